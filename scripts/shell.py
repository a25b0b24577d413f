"""Writes what shells and `man` have of the command: packaging/shell/nearfield.1 and completions. --check: fails where they differ."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
is_nearfields_command = True  # nothing has to be built

import typer.main  # noqa: E402

from nearfield import __version__, check, compare, environment, run  # noqa: E402
from nearfield.commands import NAMES, app  # noqa: E402

TARGET = ROOT / "packaging/shell"
# What is answered without Typer has its help as text.
TEXTS = {
    "run": run.USAGE,
    "exec": run.USAGE_OF_EXEC,
    "env": environment.USAGE,
    "compare": compare.USAGE,
    "check": check.USAGE,
}


def escaped(text: str) -> str:
    """As roff prints it: a period or a quote that begins a line is a command."""
    lines = text.replace("\\", "\\e").replace("-", "\\-").splitlines()
    return "\n".join(f"\\&{line}" if line[:1] in ".'" else line for line in lines)


def literal(text: str) -> str:
    return f".nf\n{escaped(text.rstrip())}\n.fi\n"


def options_of(command) -> str:
    """The options of a subcommand, with what they take."""
    found = ""
    for option in command.params:
        positional = not option.opts[0].startswith("-")
        names = option.name.upper() if positional else ", ".join(option.opts + option.secondary_opts)
        if option.name != "help" and getattr(option, "help", None):
            found += f".TP\n\\fB{escaped(names)}\\fR\n{escaped(option.help)}\n"
    return found


def manual() -> str:
    """nearfield.1"""
    group = typer.main.get_command(app)
    text = f'.TH NEARFIELD 1 "" "Nearfield {__version__}" "User Commands"\n'
    text += (
        ".SH NAME\nnearfield \\- makes MPI fast inside a node, under unmodified programs and MPI libraries\n"
    )
    text += ".SH SYNOPSIS\n\\fBnearfield run\\fR [OPTIONS] \\fImpiexec \\-n 4 ./program\\fR\n.br\n"
    text += "\\fBnearfield\\fR \\fISUBCOMMAND\\fR [OPTIONS] ...\n.SH SUBCOMMANDS\n"
    for name in NAMES:
        command = group.commands[name]
        text += f".SS nearfield {name}\n"
        if name in TEXTS:
            text += literal(TEXTS[name])
        else:
            text += f"{escaped(' '.join(command.help.split()))}\n{options_of(command)}"
    text += ".SH ENVIRONMENT\nSettings are variables NEARFIELD_...; \\fBnearfield info\\fR lists them.\n"
    text += ".SH FILES\n.TP\n$XDG_CACHE_HOME/nearfield, ~/.cache/nearfield\n"
    text += "What has been measured of each machine; it may be removed at any time.\n"
    return text


def completion(shell: str) -> str:
    """What the command itself has for a shell."""
    words = [sys.executable, "-c", "from nearfield.commands import app; app(prog_name='nearfield')"]
    env = {**os.environ, "_NEARFIELD_COMPLETE": f"source_{shell}", "PYTHONPATH": str(ROOT)}
    return subprocess.run(words, env=env, capture_output=True, text=True, check=True).stdout


def main() -> None:
    files = {"nearfield.1": manual()}
    files |= {f"nearfield.{shell}": completion(shell) for shell in ("bash", "zsh", "fish")}
    for name, text in files.items():
        path = TARGET / name
        if "--check" not in sys.argv:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            sys.exit(f"{path.relative_to(ROOT)} is stale: run scripts/shell.py")


if __name__ == "__main__":
    main()
