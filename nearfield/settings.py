"""Options of `nearfield run`, `exec`, `env` and `compare` that are settings: what they mean, and the variables that they set."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

# What each sets, what it takes (None: it is a switch), what it means.
SETTINGS = {
    "--stats": ("STATS", None, "at the end, print calls, bytes and time of each operation"),
    "--stats-file": (
        "STATS_FILE",
        "FILE",
        "write these statistics as JSON, one file for each rank; in FILE, %%r is the rank, %%p the process, %%h the host",
    ),
    "--check": (
        "CHECK",
        None,
        "compare the collective calls of all ranks, and report a difference instead of hanging",
    ),
    "--log": ("LOG", "LEVEL", "how much to log: off, error, warn, info or debug"),
    "--log-file": (
        "LOG_FILE",
        "FILE",
        "write the log to files; in FILE, %%h is the host, %%p the process, %%r the rank",
    ),
    "--algorithm": (
        "ALGORITHM",
        "TEXT",
        'force or exclude algorithms: "allreduce:partitioned;alltoall:^rounds"',
    ),
    "--heap": (
        "HEAP",
        "WHICH",
        "shared (the default): large allocations of the program lie in memory that other ranks can map; off: the C library's heap serves them",
    ),
}


def add_settings(parser: argparse.ArgumentParser, names: Iterable[str] = SETTINGS) -> None:
    """Adds the options `names`. Their values are stored under the names of the variables."""
    for name in names:
        variable, metavar, meaning = SETTINGS[name]
        takes = {"metavar": metavar} if metavar else {"action": "store_const", "const": "1"}
        parser.add_argument(name, dest=f"NEARFIELD_{variable}", help=meaning, **takes)


def add_host(parser: argparse.ArgumentParser) -> None:
    """Adds --host."""
    meaning = "use the launcher and library of this installed MPI; `nearfield info` lists the names"
    parser.add_argument("--host", metavar="NAME", help=meaning)


def add_command(parser: argparse.ArgumentParser, metavar: str) -> None:
    """Adds the command line that follows the options. It begins with the first word that is no option, or after `--`."""
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar=metavar, help=argparse.SUPPRESS)


def settings_of(asked: argparse.Namespace) -> dict[str, str]:
    """The environment variables for the given options and --host. Raises ValueError for unknown hosts."""
    env: dict[str, str] = {}
    if getattr(asked, "host", None):
        from nearfield.hosts import environment_of

        env |= environment_of(asked.host)
    given = {name: value for name, value in vars(asked).items() if name.startswith("NEARFIELD_")}
    return env | {name: value for name, value in given.items() if value is not None}
