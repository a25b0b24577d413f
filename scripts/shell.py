"""Writes the man page (packaging/shell/nearfield.1) and the shells' completions. --check: fails if the stored files differ."""

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
nearfields_command = ""  # nothing has to be built

from nearfield import __version__  # noqa: E402
from nearfield.cli import make_parser  # noqa: E402
from nearfield.commands import SUBCOMMANDS  # noqa: E402

TARGET = ROOT / "packaging/shell"
NAMES = [name for name, about in SUBCOMMANDS.items() if about]
PARSERS = make_parser(NAMES)[1]


def escaped(text: str) -> str:
    """Escapes text for roff, where a period or a quote that begins a line is a command."""
    lines = text.replace("\\", "\\e").replace("-", "\\-").splitlines()
    return "\n".join(f"\\&{line}" if line[:1] in ".'" else line for line in lines)


def options_of(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """The options that a parser's help lists."""
    return [one for one in parser._actions if one.help != argparse.SUPPRESS and one.dest != "help"]


def described(action: argparse.Action) -> str:
    """An option with what it takes and what it means."""
    takes = (
        "" if action.nargs == 0 or not action.option_strings else f" {action.metavar or action.dest.upper()}"
    )
    names = ", ".join(action.option_strings) or str(action.metavar)
    return f".TP\n\\fB{escaped(names)}\\fR{escaped(takes)}\n{escaped(action.help.replace('%%', '%'))}\n"


def manual() -> str:
    """nearfield.1"""
    text = f'.TH NEARFIELD 1 "" "Nearfield {__version__}" "User Commands"\n'
    text += ".SH NAME\nnearfield \\- makes MPI faster inside a node, under unmodified programs and MPI libraries\n"
    text += ".SH SYNOPSIS\n\\fBnearfield run\\fR [OPTIONS] \\fImpiexec \\-n 4 ./program\\fR\n.br\n"
    text += "\\fBnearfield\\fR \\fISUBCOMMAND\\fR [OPTIONS] ...\n.SH SUBCOMMANDS\n"
    for name in NAMES:
        parser = PARSERS[name]
        usage = parser.usage.replace("%(prog)s", parser.prog)
        text += f".SS {escaped(usage)}\n{escaped(parser.description.strip())}\n"
        text += "".join(map(described, options_of(parser)))
    text += ".SH ENVIRONMENT\nSettings are variables NEARFIELD_...; \\fBnearfield info\\fR lists them.\n"
    text += ".SH FILES\n.TP\n$XDG_CACHE_HOME/nearfield, ~/.cache/nearfield\n"
    text += "What has been measured of each machine; it may be removed at any time.\n"
    return text


def words_of(name: str) -> str:
    """All options of a subcommand."""
    return " ".join(word for one in options_of(PARSERS[name]) for word in one.option_strings)


def bash() -> str:
    cases = "".join(f'    {name}) words="{words_of(name)}" ;;\n' for name in NAMES)
    return f"""_nearfield() {{
  local words="{" ".join(NAMES)}"
  [ "$COMP_CWORD" -gt 1 ] && case ${{COMP_WORDS[1]}} in
{cases}    *) words= ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "${{COMP_WORDS[COMP_CWORD]}}"))
}}
complete -o default -F _nearfield nearfield
"""


def zsh() -> str:
    cases = "".join(f"  {name}) compadd -- {words_of(name)} ;;\n" for name in NAMES)
    return f"""#compdef nearfield
if ((CURRENT == 2)); then
  compadd -- {" ".join(NAMES)}
  return
fi
[[ $words[CURRENT] == -* ]] || {{ _files; return }}
case $words[2] in
{cases}esac
"""


def fish() -> str:
    lines = [
        f"complete -c nearfield -n __fish_use_subcommand -a {name} -d '{SUBCOMMANDS[name]}'" for name in NAMES
    ]
    for name in NAMES:
        names = "".join(f" -l {word.lstrip('-')}" for word in words_of(name).split())
        lines.append(f"complete -c nearfield -n '__fish_seen_subcommand_from {name}'{names}")
    return "\n".join(lines) + "\n"


def main() -> None:
    files = {"1": manual, "bash": bash, "zsh": zsh, "fish": fish}
    for ending, write in files.items():
        path, text = TARGET / f"nearfield.{ending}", write()
        if "--check" not in sys.argv:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            sys.exit(f"{path.relative_to(ROOT)} is stale: run scripts/shell.py")


if __name__ == "__main__":
    main()
