"""`nearfield compare`: a command as it is, with the heap alone, with MPI alone and with both, in turns.

Every second round runs the four modes in reverse order, so that none always runs first. Figures are medians over rounds with quartiles; a
ratio compares with the plain run of the same round. Two more runs record the time in MPI, plain and with Nearfield (mpi/shim/recording).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nearfield.compared import BOTH, HEAP, MESSAGES, MODES, PLAIN, Compared, Run
from nearfield.libraries import NAMES, with_nearfield, without_nearfield
from nearfield.libraries import command as own_command
from nearfield.sameness import compare_outputs

LIBRARIES = {HEAP: NAMES[1:], MESSAGES: NAMES[:1], BOTH: NAMES}
PATIENCE = 60  # seconds beyond ten times what the plain command takes, until it is stopped


def environment(mode: str, given: dict[str, str]) -> dict[str, str]:
    """The environment of a run in that mode. Raises NotBuilt, ValueError."""
    env = given | {"LD_PRELOAD": without_nearfield(given.get("LD_PRELOAD", ""))}
    env.pop("NEARFIELD", None)
    if mode == PLAIN:
        return env
    env |= {"NEARFIELD_HEAP": "off" if mode == MESSAGES else "shared"}
    return with_nearfield(env, LIBRARIES[mode])


def compare(
    command: list[str],
    given: dict[str, str],
    rounds: int,
    status: int = 0,
    page: Path | None = None,
    announce=lambda text: None,
) -> Compared:
    """Runs a command `4 * rounds + 2` times with the environment `given`. `status`: the command's exit status if it succeeds; `page`: the
    file for a report of the recorded run; `announce` is called with a text before each run.

    Raises NotBuilt; ValueError if the command cannot be started, or has another exit status without Nearfield.
    """
    environments = {mode: environment(mode, given) for mode in MODES}
    with tempfile.TemporaryDirectory(prefix="nearfield-compare-") as text:
        runner = Runner(command, Path(text))
        found = Compared(command, status, {mode: [] for mode in MODES})
        limit = 0.0
        given_up: set[str] = set()
        for number in range(rounds):
            for mode in MODES if number % 2 == 0 else MODES[::-1]:
                if mode in given_up:
                    continue
                announce(f"run {number + 1} of {rounds}, {mode}")
                run = runner.run(environments[mode], limit)
                found.runs[mode].append(run)
                if run.late:
                    given_up.add(mode)
                if not limit:
                    if not run.good(status):
                        raise ValueError(_fails_by_itself(command, run))
                    limit = 10 * run.wall + PATIENCE
        for mode in (PLAIN, BOTH):
            announce(f"time in MPI, {mode}")
            found.in_mpi[mode] = _recorded(runner, mode, given, limit, status, found, page)
        _compare_outputs(found)
    return found


def _fails_by_itself(command: list[str], run: Run) -> str:
    said = f":\n{run.errors.rstrip()}" if run.errors.strip() else ""
    return f"{command[0]} ends with exit status {run.status} without Nearfield (if that is normal, say so by --status){said}"


class Runner:
    """Runs a command again and again, with the same standard input."""

    def __init__(self, command: list[str], directory: Path) -> None:
        self.command, self.directory = command, directory
        self._kept: dict[str, Path] = {}

    def run(self, env: dict[str, str], limit: float) -> Run:
        """Runs it once; it is stopped after `limit` seconds (0: never). Raises ValueError where it cannot be started."""
        output = self.directory / "output"
        with output.open("wb") as out, tempfile.TemporaryFile() as err, _input() as given:
            begin = time.monotonic()
            try:
                process = subprocess.Popen(
                    self.command, env=env, stdin=given, stdout=out, stderr=err, start_new_session=True
                )
            except OSError as error:
                raise ValueError(f"cannot start {self.command[0]}: {error.strerror}") from None
            status, used, late = _wait(process, limit)
            wall = time.monotonic() - begin
            err.seek(max(0, err.seek(0, os.SEEK_END) - 4000))
            errors = err.read().decode(errors="replace")
        return Run(wall, used.ru_utime + used.ru_stime, status, late, self._keep(output), errors)

    def _keep(self, output: Path) -> Path:
        with output.open("rb") as file:
            sha = hashlib.sha256()  # hashlib.file_digest is Python 3.11's
            for piece in iter(lambda: file.read(1 << 20), b""):
                sha.update(piece)
        digest = sha.hexdigest()
        if digest not in self._kept:
            self._kept[digest] = output.rename(self.directory / digest)
        return self._kept[digest]


@contextlib.contextmanager
def _input() -> Iterator[int]:
    """Opens our standard input again if it is a file; otherwise /dev/null, since data of a pipe can be read only once."""
    is_file = False
    with contextlib.suppress(OSError):
        is_file = stat.S_ISREG(os.fstat(0).st_mode)
    descriptor = os.open("/proc/self/fd/0" if is_file else os.devnull, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _wait(process: subprocess.Popen, limit: float) -> tuple[int, Any, bool]:
    """Waits. Returns the exit status as a shell reports it, the resources that the process has used, and whether it was stopped."""
    over = threading.Event()
    late = threading.Event()

    def stop() -> None:
        late.set()
        for number in (signal.SIGTERM, signal.SIGKILL):  # the launcher takes its ranks with it
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            if over.wait(5):
                return

    timer = threading.Timer(limit, stop)
    timer.daemon = True
    if limit:
        timer.start()
    try:
        _, status, used = os.wait4(process.pid, 0)
    except BaseException:  # the terminal's Ctrl-C does not reach its session
        os.killpg(process.pid, signal.SIGTERM)
        raise
    finally:
        over.set()
        timer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode if process.returncode >= 0 else 128 - process.returncode, used, late.is_set()


def _recorded(
    runner: Runner,
    mode: str,
    given: dict[str, str],
    limit: float,
    status: int,
    found: Compared,
    page: Path | None,
) -> float | None:
    """Runs the command with a recording. Returns the share of the time that was in MPI; None if that is not known."""
    from nearfield import recording

    with tempfile.TemporaryDirectory(prefix="nearfield-compare-") as text:
        directory, word = Path(text) / "ranks", Path(text) / "word"
        directory.mkdir()
        word.touch()
        env = environment(MESSAGES if mode == PLAIN else mode, given)
        env |= {"NEARFIELD_RECORD": str(directory), "NEARFIELD_OUTCOME": str(word)}
        if mode == PLAIN:
            env["NEARFIELD"] = "off"
        run = runner.run(env, limit)
        if mode == BOTH:
            found.unserved = _unserved(found.command, word, given)
            if page and any(directory.glob("*.json")):
                _write_page(directory, page)
        try:
            seconds = recording.seconds_in_mpi(directory)
        except (KeyError, ValueError):
            return None
    return min(1.0, seconds / run.wall) if seconds is not None and run.good(status) else None


def _unserved(command: list[str], word: Path, given: dict[str, str]) -> list[str]:
    """The reasons that `nearfield run` gives if Nearfield has served nothing; an empty list if it has."""
    asked = [str(own_command()), "afterwards", str(word), "0", *command]
    try:
        told = subprocess.run(asked, env=given, capture_output=True, text=True, timeout=300).stderr
    except subprocess.TimeoutExpired:
        return ["the reason is unknown, because to examine the programs took more than 300 s"]
    reasons = told.partition("nearfield run: ")[2]
    return [line.strip() for line in reasons.splitlines()]


def _write_page(directory: Path, page: Path) -> None:
    from nearfield import recording
    from nearfield import report as pages

    run = recording.join(directory)
    page.with_suffix(".json").write_text(json.dumps(run, indent=1) + "\n")
    pages.write_page(run, page)


def _compare_outputs(found: Compared) -> None:
    """Fills in `outputs`."""
    good = {
        mode: list(dict.fromkeys(run.output for run in runs if run.good(found.status)))
        for mode, runs in found.runs.items()
    }
    texts = {
        file: file.read_text(errors="replace") for file in {file for some in good.values() for file in some}
    }
    plain = [texts[file] for file in good[PLAIN]]
    found.prints = any(text.strip() for text in plain)
    for mode in MODES[1:]:
        judged = [compare_outputs(plain, texts[file], sums=mode != HEAP) for file in good[mode]]
        if judged:
            found.outputs[mode] = min(judged, key=lambda one: (one.same, one.exact))
