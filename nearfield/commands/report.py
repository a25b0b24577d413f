"""Writes the page of a run again, from the JSON file beside it."""

from __future__ import annotations

import argparse
from pathlib import Path


def options(parser: argparse.ArgumentParser) -> None:
    """What `nearfield report` takes."""
    meaning = "the JSON file that `nearfield run --report` has written beside its page"
    parser.add_argument("run", type=Path, metavar="RUN", help=meaning)
    parser.add_argument(
        "--out", type=Path, help="the page; by default beside the JSON file, with the same name"
    )


def main(asked: argparse.Namespace) -> None:
    """Writes it. Raises ValueError where the JSON is none, or the page cannot be written."""
    from nearfield import recording
    from nearfield.outputs import PAGE, need

    need(PAGE)
    from nearfield import report as pages

    found = recording.load(asked.run)
    page = asked.out or asked.run.with_suffix(".html")
    try:
        pages.write_page(found, page)
    except OSError as error:
        raise ValueError(f"cannot write {page}: {error.strerror}") from None
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{asked.run} is damaged: {type(error).__name__} {error}") from None
    print(f"report: {page}")
