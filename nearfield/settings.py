"""Options of `nearfield run`, `exec`, `env` and `compare` that are settings: what they mean, and the variables that they set."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

# What each sets, what it takes (None: it is a switch), what it means.
SETTINGS = {
    "--stats": ("STATS", None, "print calls, bytes and time of every operation at the end"),
    "--stats-file": (
        "STATS_FILE",
        "FILE",
        "write them, of each rank, as JSON; %%r: rank, %%p: process, %%h: host",
    ),
    "--check": ("CHECK", None, "compare the calls of all ranks; report which differ instead of hanging"),
    "--log": ("LOG", "LEVEL", "off, error, warn, info or debug"),
    "--log-file": ("LOG_FILE", "FILE", "where the log goes; %%h: host, %%p: process, %%r: rank"),
    "--algorithm": (
        "ALGORITHM",
        "TEXT",
        'force or exclude algorithms: "allreduce:partitioned;alltoall:^rounds"',
    ),
    "--heap": (
        "HEAP",
        "WHICH",
        "shared: large allocations of the program lie where peers reach them, as without this option; off: the C library's own heap",
    ),
}


def add_settings(parser: argparse.ArgumentParser, names: Iterable[str] = SETTINGS) -> None:
    """Adds those options; what is asked for lies under the names of the variables."""
    for name in names:
        variable, metavar, meaning = SETTINGS[name]
        takes = {"metavar": metavar} if metavar else {"action": "store_const", "const": "1"}
        parser.add_argument(name, dest=f"NEARFIELD_{variable}", help=meaning, **takes)


def add_host(parser: argparse.ArgumentParser) -> None:
    """Adds --host."""
    meaning = "put an installed host's launcher and library first; `nearfield info` lists them"
    parser.add_argument("--host", metavar="NAME", help=meaning)


def add_command(parser: argparse.ArgumentParser, metavar: str) -> None:
    """Adds the command line behind the options, which begins with the first word that is none, or behind `--`."""
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar=metavar, help=argparse.SUPPRESS)


def settings_of(asked: argparse.Namespace) -> dict[str, str]:
    """What the environment needs for those options and for --host. Raises ValueError for unknown hosts."""
    env: dict[str, str] = {}
    if getattr(asked, "host", None):
        from nearfield.hosts import environment_of

        env |= environment_of(asked.host)
    given = {name: value for name, value in vars(asked).items() if name.startswith("NEARFIELD_")}
    return env | {name: value for name, value in given.items() if value is not None}
