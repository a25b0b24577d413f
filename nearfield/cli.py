"""The `nearfield` command. It has one parser; the subcommand on the command line adds its options (nearfield/commands)."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

from nearfield import __version__
from nearfield.commands import SUBCOMMANDS
from nearfield.libraries import NotBuilt

ABOUT = """Makes MPI faster inside a node. `nearfield run --help` says how to run a program, `nearfield compare --help` how to measure its gain."""


class Help(argparse.RawDescriptionHelpFormatter):
    """Help texts in which an option's default follows its meaning."""

    def _get_help_string(self, action: argparse.Action) -> str:
        shown = action.option_strings and action.nargs != 0 and action.default
        return (action.help or "") + (" (default: %(default)s)" if shown else "")


class Parser(argparse.ArgumentParser):
    """A parser that prints errors in one line."""

    def __init__(self, **more) -> None:
        super().__init__(formatter_class=Help, allow_abbrev=False, **more)

    def error(self, message: str) -> None:
        self.exit(2, f"{self.prog}: {message}\n")


def module_of(name: str) -> ModuleType:
    """The module of a subcommand: its docstring is the help, options() declares what it takes, main() does it."""
    return import_module(f"nearfield.commands.{name}")


def make_parser(names: Sequence[str] = tuple(SUBCOMMANDS)) -> tuple[Parser, dict[str, Parser]]:
    """Makes the parser and those of the subcommands `names`, with their options; without names, those of all subcommands."""
    parser = Parser(prog="nearfield", description=ABOUT, usage="nearfield SUBCOMMAND [OPTIONS] ...")
    parser.add_argument("--version", action="version", version=__version__)
    added = parser.add_subparsers(
        dest="subcommand", metavar="SUBCOMMAND", title="subcommands", required=True, prog="nearfield"
    )
    found = {}
    known = {name: about for name, about in SUBCOMMANDS.items() if name in names}
    for name, about in (known or SUBCOMMANDS).items():
        found[name] = added.add_parser(name, **({"help": about} if about else {}))
        if known:
            module = module_of(name)
            found[name].description = module.__doc__
            module.options(found[name])
            places = [action.metavar for action in found[name]._actions if not action.option_strings]
            found[name].usage = " ".join(["%(prog)s [OPTIONS]", *places])
    return parser, found


def call(words: Sequence[str]) -> int:
    """Carries out a command line and returns the exit status. Raises SystemExit for --help and wrong arguments."""
    parser, parsers = make_parser(words[:1])
    if not words:
        parser.print_help(sys.stderr)
        return 2
    asked, unknown = parser.parse_known_args(words)
    own = parsers[asked.subcommand]
    if unknown:
        own.error(f"{' '.join(unknown)} is not an option; --help lists the options")
    if hasattr(asked, "command"):
        asked.command = asked.command[asked.command[:1] == ["--"] :]
        if not asked.command:
            own.error("the command is missing: write it after the options")
    try:
        return module_of(asked.subcommand).main(asked) or 0
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except BrokenPipeError:  # whoever reads has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        if not error.filename:
            raise
        own.error(f"{error.filename}: {error.strerror}")
    except (NotBuilt, ValueError) as error:
        own.error(str(error))


def main() -> None:
    """Entry point."""
    sys.exit(call(sys.argv[1:]))
