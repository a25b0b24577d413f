"""Reads values of the command line. The functions raise WrongValue, whose text says what is allowed."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Collection, Sequence

# What options that several subcommands have mean.
RANKS_PER_NODE = "by default the number of the machine's CPUs"
MACHINE = "here (this machine), a preset (epyc-2x96, knl-64) or a file"


class WrongValue(ValueError, argparse.ArgumentTypeError):
    """Its text is what argparse says of an option."""


UNITS = {"": 0, "K": 10, "M": 20, "G": 30}


def parse_bytes(text: str) -> int:
    """A number of bytes: 4096, 4K, 1M, 2G."""
    word = text.strip().upper()
    digits = word.rstrip("KMG")
    if not digits.isdecimal() or word[len(digits) :] not in UNITS:
        raise WrongValue(f"{text or 'nothing'} is not a number of bytes; write 4096, 4K, 1M or 2G")
    return int(digits) << UNITS[word[len(digits) :]]


def parse_sizes(text: str, quick: bool = False) -> list[int]:
    """Sizes in bytes out of "8:4M" (powers of two; every fourth one when `quick`) or "8,1K,1M"."""
    if ":" not in text:
        return [parse_bytes(word) for word in text.split(",")]
    first, last = map(parse_bytes, text.split(":", 1))
    if first < 4 or last < first:
        raise WrongValue(f"sizes {text}: write sizes from 4 bytes on, in increasing order")
    sizes = []
    while first <= last:
        sizes.append(first)
        first <<= 4 if quick else 1
    return sizes


def parse_ranks(text: str, what: str = "ranks") -> list[int]:
    """Numbers of ranks, or of `what`, out of "2:192" (2, its doubles, and the end) or "2,3,8"."""
    words = text.replace(":", ",").split(",")
    if not all(word.strip().isdecimal() and int(word) for word in words) or text.count(":") > 1:
        raise WrongValue(
            f"{text or 'nothing'} is not a number of {what}; write 2, a list 2,3,8, or 2:192 (powers of two)"
        )
    if ":" not in text:
        return [int(word) for word in words]
    first, last = map(int, words)
    if last < first:
        raise WrongValue(f"{what} {text}: write them in increasing order")
    numbers = []
    while first < last:
        numbers.append(first)
        first *= 2
    return [*numbers, last]


parse_nodes, parse_points = (functools.partial(parse_ranks, what=what) for what in ("nodes", "points"))


def check_words(words: Sequence[str], allowed: Collection[str], what: str) -> list[str]:
    """Returns the words if all of them are allowed. `what`: the kind of word that the error names."""
    for word in words:
        if word not in allowed:
            raise WrongValue(f"there is no {what} {word or 'without a name'}; there are {', '.join(allowed)}")
    return list(words)


def words_of(allowed: Collection[str], what: str) -> Callable[[str], list[str]]:
    """Reads a list, separated by commas, of words that are allowed."""
    return lambda text: check_words(text.split(","), allowed, what)


def at_least(least: float) -> Callable[[str], float]:
    """Returns a function that reads a number of at least `least`, an integer if `least` is one."""
    kind = type(least)

    def read(text: str) -> float:
        try:
            number = kind(text)
        except ValueError:
            number = least - 1
        if not number >= least:
            raise WrongValue(f"takes a number of at least {least:g}, not {text}")
        return number

    return read
