"""`nearfield run`: sets the environment and becomes the launcher. Imports nothing heavy: it must start at once."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

USAGE = """\
Usage: nearfield run [OPTIONS] LAUNCHER ARGUMENTS...

Runs a launcher (mpiexec, srun, a script around them) with Nearfield under its MPI programs. Where none of
them was served it says why when the launcher has ended, unless --log is error or off.

  --stats           print calls, bytes and time of every operation at the end
  --check           compare the calls of all ranks; report which differ instead of hanging
  --log LEVEL       off, error, warn, info or debug
  --log-file FILE   where the log goes; %h: host, %p: process, %r: rank
  --algorithm TEXT  force or exclude algorithms, e.g. "allreduce:partitioned;alltoall:^rounds"
  --heap WHICH      shared: large allocations of the program lie where peers
                    reach them (the default); off: the C library's own heap
  --report FILE     at the end, write what the program's calls of MPI did: a page,
                    FILE.html, and beside it the same as JSON
  --trace FILE      at the end, write its last calls one by one, as JSON for
                    Perfetto and Chrome; the page then says who waited for whom
  --host NAME       put an installed host's launcher and library first; `nearfield info` lists them
"""


def main(arguments: list[str]) -> int:
    """Replaces this process by the launcher; returns an exit status only when that fails, or a report is made."""
    env = dict(os.environ)
    settings = {
        "--log": "NEARFIELD_LOG",
        "--log-file": "NEARFIELD_LOG_FILE",
        "--algorithm": "NEARFIELD_ALGORITHM",
        "--heap": "NEARFIELD_HEAP",
    }
    switches = {"--stats": "NEARFIELD_STATS", "--check": "NEARFIELD_CHECK"}
    files: dict[str, str] = {}  # what is made at the end
    rest = list(arguments)
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        option, has_value, value = option.partition("=")
        if option in ("-h", "--help"):
            print(USAGE, end="")
            return 0
        if option == "--":
            break
        if option in switches:
            env[switches[option]] = "1"
            continue
        if option not in settings and option not in ("--host", "--report", "--trace"):
            return _fail(f"unknown option {option}\n\n{USAGE}")
        if not has_value:
            if not rest:
                return _fail(f"{option} needs a value")
            value = rest.pop(0)
        if option == "--host":
            from nearfield.hosts import environment_of

            try:
                env |= environment_of(value)
            except ValueError as error:
                return _fail(str(error))
        elif option in settings:
            env[settings[option]] = value
        else:
            files[option] = value
    if not rest:
        return _fail(USAGE)
    reporting = None
    if files:
        from nearfield.reporting import Reporting

        try:
            reporting = Reporting(
                *(Path(files[name]) if name in files else None for name in ("--report", "--trace"))
            )
        except ValueError as error:
            return _fail(str(error))

    from nearfield.libraries import NotBuilt, with_nearfield

    given = env
    try:
        env = with_nearfield(given)
    except (NotBuilt, ValueError) as error:
        return _fail(str(error))
    for name in ("NEARFIELD_LOG_FILE", "NEARFIELD_RECORD", "NEARFIELD_TRACE"):
        if file := env.get(name):
            env[name] = os.path.join(_directory(name), file)  # programs change theirs
    outcome = None
    if env.get("NEARFIELD_LOG") not in ("off", "error") and (outcome := _report_afterwards(rest, given)):
        env["NEARFIELD_OUTCOME"] = outcome
    try:
        if reporting:
            return reporting.run(rest, env)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and programs would inherit that
        os.execvpe(rest[0], rest, env)
    except (OSError, ValueError) as error:
        if outcome:
            os.unlink(outcome)  # there is nothing to say
        return _fail(
            f"cannot start {rest[0]}: {error.strerror}" if isinstance(error, OSError) else str(error)
        )


def _report_afterwards(command: list[str], env: dict[str, str]) -> str | None:
    """Has it said when the launcher has ended that nothing was served, and why; the file for what processes say."""
    import tempfile

    from nearfield.afterwards import call_afterwards

    try:
        descriptor, file = tempfile.mkstemp(prefix="nearfield-run-")
        os.close(descriptor)
    except OSError:
        return None

    def report() -> None:
        from nearfield.outcome import describe, read_outcome

        words = Path(file)
        if not words.exists():
            return
        outcome = read_outcome(words)
        words.unlink()
        lines = describe(outcome)
        _say(lines)
        if lines and not outcome.reasons:
            from nearfield.check import explain_absence

            _say(explain_absence(command, env))

    if call_afterwards(report):
        return file
    os.unlink(file)
    return None


def _say(lines: list[str]) -> None:
    for line in lines:
        print(f"nearfield run: {line}", file=sys.stderr, flush=True)


def _directory(setting: str) -> str:
    here = os.getcwd()
    return here if setting == "NEARFIELD_RECORD" else here.replace("%", "%%")  # the others are patterns


def _fail(text: str) -> int:
    print(f"nearfield run: {text}", file=sys.stderr)
    return 2
