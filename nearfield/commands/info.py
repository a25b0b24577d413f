"""Shows the machine, ways of reaching memory, hosts. Of the CPUs it counts those really available; of ways that do not work here it says
why.
"""

from __future__ import annotations

import argparse


def options(parser: argparse.ArgumentParser) -> None:
    """What `nearfield info` takes."""
    parser.add_argument("--json", action="store_true", help="print JSON, of everything")
    parser.add_argument(
        "--all", action="store_true", help="also memory, all settings, figures of the machine, algorithms"
    )
    parser.add_argument(
        "--settings",
        action="store_true",
        help="print the settings only, as docs/reference/settings.md has them",
    )


def main(asked: argparse.Namespace) -> None:
    """Prints what is asked for."""
    from nearfield.info import settings_table, show

    if asked.settings:
        print(settings_table())
    else:
        show(asked.json, asked.all)
