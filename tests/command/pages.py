"""Whether a page is whole, and takes nothing from outside."""

from html.parser import HTMLParser
from pathlib import Path

VOID = {"meta", "br", "link", "img", "hr", "input"}


class Page(HTMLParser):
    """Elements that are left open, what the page takes from outside, and its text."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.open: list[str] = []
        self.outside: list[str] = []
        self.words: list[str] = []
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        if tag == "td":  # narrow screens show it beside its cell
            assert dict(attributes).get("data-title") is not None, self.getpos()
        if tag in ("script", "link", "img", "iframe"):
            self.outside.append(tag)
        self.outside += [f"{name}={value}" for name, value in attributes if name in ("src", "href")]
        self.outside += [value for name, value in attributes if name == "style" and "url(" in (value or "")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["style"]:
            self.outside += [word for word in ("url(", "@import") if word in data]
        else:
            self.words.append(data)


def check_page(path: Path, *words: str) -> None:
    """The page is whole and alone, and has these words."""
    page = Page(path)
    text = " ".join(page.words)
    assert not page.open and not page.outside
    for word in words:
        assert word in text, text[:3000]
