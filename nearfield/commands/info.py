"""Shows the machine, the ways of reaching memory, and the MPIs found. It counts only the CPUs that it may use. If a way of reaching
memory does not work here, it says why.
"""

from __future__ import annotations

import argparse


def options(parser: argparse.ArgumentParser) -> None:
    """What `nearfield info` takes."""
    parser.add_argument("--json", action="store_true", help="print everything as JSON")
    parser.add_argument(
        "--all",
        action="store_true",
        help="also show memory, all settings, figures of the machine, and algorithms",
    )
    parser.add_argument(
        "--settings",
        action="store_true",
        help="print the settings alone, as the table of docs/reference/settings.md",
    )


def main(asked: argparse.Namespace) -> None:
    """Prints what is asked for."""
    from nearfield.info import settings_table, show

    if asked.settings:
        print(settings_table())
    else:
        show(asked.json, asked.all)
