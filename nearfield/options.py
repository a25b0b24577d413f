"""Options in front of a launcher's command line, as `nearfield run` and `nearfield compare` take them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

SETTINGS = {
    "--log": "NEARFIELD_LOG",
    "--log-file": "NEARFIELD_LOG_FILE",
    "--stats-file": "NEARFIELD_STATS_FILE",
    "--algorithm": "NEARFIELD_ALGORITHM",
    "--heap": "NEARFIELD_HEAP",
}
SWITCHES = {"--stats": "NEARFIELD_STATS", "--check": "NEARFIELD_CHECK"}


class WrongOption(Exception):
    """The text says which, and why; of a command line that is not there, how it is used."""


def read_options(
    arguments: Sequence[str], with_value: Collection[str], switches: Collection[str] = ()
) -> tuple[dict[str, str], list[str]]:
    """Options by name, switches and --help with "", and the command line behind them. Raises WrongOption."""
    rest = list(arguments)
    found: dict[str, str] = {}
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if option == "--":
            break
        option, has_value, value = option.partition("=")
        if option in ("-h", "--help"):
            return {"--help": ""}, []
        if option in switches:
            found[option] = ""
            continue
        if option not in with_value:
            raise WrongOption(f"unknown option {option}; --help lists them")
        if not has_value:
            if not rest:
                raise WrongOption(f"{option} needs a value")
            value = rest.pop(0)
        found[option] = value
    return found, rest


def read_command(
    arguments: Sequence[str], with_value: Collection[str], usage: str, switches: Collection[str] = ()
) -> tuple[dict[str, str], list[str]] | None:
    """As read_options, of what has to have a command line; None: `usage` was asked for, and is printed. Raises WrongOption."""
    options, command = read_options(arguments, with_value, switches)
    if "--help" in options:
        print(usage, end="")
        return None
    if not command:
        raise WrongOption(usage)
    return options, command


def settings_of(options: dict[str, str]) -> dict[str, str]:
    """What an environment needs for those options that are settings, and for --host. Raises ValueError for unknown hosts."""
    env: dict[str, str] = {}
    if "--host" in options:
        from nearfield.hosts import environment_of

        env |= environment_of(options["--host"])
    return env | {SETTINGS[name]: value for name, value in options.items() if name in SETTINGS}
