"""`nearfield run --report`: runs the launcher, then makes a page, JSON and a trace of what its ranks have recorded."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

FORWARDED = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def run_and_report(command: list[str], env: dict[str, str], report: Path | None, trace: Path | None) -> int:
    """Runs a command; its exit status as a shell has it. Raises OSError where it cannot be started or nothing written.

    The files of the ranks lie beside the report meanwhile, since other nodes may not share /tmp.
    """
    beside = report or trace
    with tempfile.TemporaryDirectory(
        prefix=f".{beside.stem}-", dir=beside.resolve().parent, ignore_cleanup_errors=True
    ) as name:
        directory = Path(name)
        env = env | {"NEARFIELD_RECORD": name}
        if trace:
            env["NEARFIELD_TRACE"] = f"{name.replace('%', '%%')}/%h.%p.trace"
        status = _run(command, env)
        if not any(directory.glob("*.json")):
            _say(
                "no report: no process has written one, so none called MPI_Init with Nearfield under it and lived"
                " for a second"
            )
            return status
        from nearfield import recording
        from nearfield import report as pages

        if report:
            run = recording.join(directory)
            report.with_suffix(".json").write_text(json.dumps(run, indent=1) + "\n")
            pages.write_page(run, report)
            _say(f"report: {report}, {report.with_suffix('.json')}")
        if trace:
            trace.write_text(json.dumps(recording.join_traces(directory)) + "\n")
            _say(f"trace: {trace} (ui.perfetto.dev and chrome://tracing show it)")
        return status


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
