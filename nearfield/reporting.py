"""`nearfield run --report`: runs the launcher, then makes a page, JSON and a trace of what its ranks have recorded."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from nearfield.outputs import check_outputs

FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


class Reporting:
    """The files that one run shall produce."""

    def __init__(self, report: Path | None, trace: Path | None) -> None:
        """Raises ValueError for files that cannot be written, before anything is written."""
        if report and report.suffix not in (".html", ".htm"):
            raise ValueError(f"--report writes a page whose name ends in .html, not {report.name}")
        self.page, self.trace = report, trace
        self.figures = report.with_suffix(".json") if report else None
        check_outputs((self.page, self.figures, self.trace))

    def run(self, command: list[str], env: dict[str, str]) -> int:
        """Runs a command and writes the files. Returns the exit status as a shell reports it, even if a file could not be written.
        Raises OSError if the command cannot be started, ValueError if the folder of the report cannot be written.

        During the run the files of the ranks lie beside the report, since other nodes may not share /tmp.
        """
        beside = self.page or self.trace
        try:
            directory = Path(tempfile.mkdtemp(prefix=f".{beside.stem}-", dir=beside.resolve().parent))
        except OSError as error:
            raise ValueError(f"cannot write {beside}: {error.strerror}") from None
        env = env | {"NEARFIELD_RECORD": str(directory)}
        if self.trace:
            env["NEARFIELD_TRACE"] = f"{str(directory).replace('%', '%%')}/%h.%p.%r.trace"
        try:
            status = _run(command, env)
        except OSError:
            shutil.rmtree(directory, ignore_errors=True)
            raise
        try:
            self._write(directory)
        except OSError as error:
            _say(
                f"cannot write {error.filename or beside}: {error.strerror}; the ranks' files stay in {directory}"
            )
        except (KeyError, ValueError) as error:
            _say(f"no report: the ranks' files in {directory} are damaged: {error!r}")
        else:
            shutil.rmtree(directory, ignore_errors=True)
        return status

    def _write(self, directory: Path) -> None:
        from nearfield import recording
        from nearfield import report as pages

        if not any(directory.glob("*.json")):
            _say("no report: no process has written one, so none called MPI_Init with Nearfield under it")
            return
        if self.page:
            run = recording.join(directory)
            self.figures.write_text(json.dumps(run, indent=1) + "\n")
            pages.write_page(run, self.page)
            _say(f"report: {self.page}, {self.figures}")
        if self.trace:
            trace = recording.join_traces(directory)
            if not trace["traceEvents"]:
                _say("no trace: ranks write theirs when they end by themselves, and none did")
                return
            self.trace.write_text(json.dumps(trace) + "\n")
            _say(f"trace: {self.trace} (ui.perfetto.dev and chrome://tracing show it)")


def _run(command: list[str], env: dict[str, str]) -> int:
    # A terminal's Ctrl-C reaches the launcher as well: what it has left is reported.
    with subprocess.Popen(command, env=env, close_fds=False) as process:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGQUIT, signal.SIG_IGN)
        for number in FORWARDED:
            signal.signal(number, lambda got, _: process.send_signal(got))
        status = process.wait()
    return 128 - status if status < 0 else status


def _say(text: str) -> None:
    print(f"nearfield run: {text}", file=sys.stderr)
