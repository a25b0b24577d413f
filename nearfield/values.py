"""Values as people write them on the command line. Raise ValueError with what is allowed."""

from __future__ import annotations

from collections.abc import Collection, Sequence

UNITS = {"": 0, "K": 10, "M": 20, "G": 30}


def parse_bytes(text: str) -> int:
    """A number of bytes: 4096, 4K, 1M, 2G."""
    word = text.strip().upper()
    digits = word.rstrip("KMG")
    if not digits.isdecimal() or word[len(digits) :] not in UNITS:
        raise ValueError(f"{text or 'nothing'} is no number of bytes; write 4096, 4K, 1M or 2G")
    return int(digits) << UNITS[word[len(digits) :]]


def parse_sizes(text: str, quick: bool = False) -> list[int]:
    """Sizes in bytes out of "8:4M" (powers of two; every fourth one when `quick`) or "8,1K,1M"."""
    if ":" not in text:
        return [parse_bytes(word) for word in text.split(",")]
    first, last = map(parse_bytes, text.split(":", 1))
    if first < 4 or last < first:
        raise ValueError(f"sizes {text}: they start at 4 bytes and grow")
    sizes = []
    while first <= last:
        sizes.append(first)
        first <<= 4 if quick else 1
    return sizes


def parse_ranks(text: str, what: str = "ranks") -> list[int]:
    """Numbers of ranks out of "2:192" (powers of two, and the end) or "2,3,8"; `what` else is counted."""
    words = text.replace(":", ",").split(",")
    if not all(word.strip().isdecimal() and int(word) for word in words) or text.count(":") > 1:
        raise ValueError(
            f"{text or 'nothing'} is no number of {what}; write 2, a list 2,3,8, or 2:192 (powers of two)"
        )
    if ":" not in text:
        return [int(word) for word in words]
    first, last = map(int, words)
    if last < first:
        raise ValueError(f"{what} {text}: they grow")
    numbers = []
    while first < last:
        numbers.append(first)
        first *= 2
    return [*numbers, last]


def check_words(words: Sequence[str], allowed: Collection[str], what: str) -> list[str]:
    """The words, where all of them are allowed; `what` one is called."""
    for word in words:
        if word not in allowed:
            raise ValueError(f"there is no {what} {word or 'without a name'}; there are {', '.join(allowed)}")
    return list(words)
