"""A Linux guest under emulation, with the NUMA nodes of machines.py, in which commands run on the host's files.

    with Guest(MACHINES["per-socket"]) as guest:
        print(guest.run(["cat", "/proc/self/numa_maps"], timeout=30).stdout)
        job = guest.launch("mpich", 4, ["./program"], {"NEARFIELD_MEMORY": "all:bandwidth"}, timeout=120)

A guest boots in some seconds, takes about 0.3 GiB, and runs one command after the other, as root. It sees the host's
files under the same names; what it writes stays in its memory and goes with it. Times in it say nothing. After Lost the
machine boots again for the next test. hwloc's order of nodes is not the kernel's: tests name nodes by the kernel's numbers.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import shlex
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType

from tests.guest.initramfs import pack
from tests.guest.machines import Machine
from tests.guest.packages import CACHE, fetch
from tests.mpi.jobs import Completed, command, environment

BOOT = (
    300  # seconds; 6 on two cores that have nothing else to do, but builds and other tests may run beside us
)
GRACE = 60  # seconds that the guest has to end a command that took too long, before it is given up


RUNNING = "running-"  # begins the names of guests' folders in CACHE; the process that uses it follows


class Lost(Exception):
    """The guest does not answer, or has ended; the text has the last lines of its console."""


class Guest:
    """A running guest. Raises packages.Unavailable where there can be none."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._stack = contextlib.ExitStack()
        self._commands = 0
        self._unread = b""
        parts = fetch()
        with self._stack:
            _sweep()
            made = tempfile.TemporaryDirectory(
                prefix=f"{RUNNING}{os.getpid()}-", dir=CACHE, ignore_cleanup_errors=True
            )
            self.scratch = Path(self._stack.enter_context(made))
            self._jobs = self.scratch / "jobs"
            self._jobs.mkdir()
            (self.scratch / "initramfs").write_bytes(pack(parts))
            self.process = subprocess.Popen(
                # Ends with us, however we do.
                ["setpriv", "--pdeathsig", "KILL", *parts.emulator, *self._options(parts.kernel)],
                env=parts.environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=(self.scratch / "emulator").open("wb"),
                start_new_session=True,
            )
            self._stack.callback(self._end)
            self._expect("ready", BOOT)
            self._stack = self._stack.pop_all()

    def _options(self, kernel: Path) -> list[str]:
        files = "security_model=none,multidevs=remap"
        return [
            *self.machine.options(),
            *("-accel", "tcg,thread=multi", "-cpu", "max"),
            *("-kernel", str(kernel), "-initrd", str(self.scratch / "initramfs")),
            # The kernel tests its timer against the clock, which a busy host lets it fail.
            *("-append", "console=ttyS0 quiet panic=-1 mitigations=off no_timer_check nowatchdog"),
            *("-nodefaults", "-no-user-config", "-display", "none", "-net", "none", "-no-reboot"),
            *("-serial", f"file:{self.scratch}/console"),
            *("-chardev", "stdio,id=commands,signal=off", "-serial", "chardev:commands"),
            *("-virtfs", f"local,path=/,mount_tag=host,readonly=on,{files}"),
            *("-virtfs", f"local,path={self._jobs},mount_tag=jobs,{files}"),
        ]

    def run(self, arguments: list[str], env: dict[str, str] | None = None, timeout: float = 60) -> Completed:
        """Runs a command in the guest with these variables on top of a bare environment, in the present folder.

        After `timeout` seconds all of it is killed, and in any case what it has left running or in /dev/shm when it has
        ended. Raises Lost when the guest itself fails.
        """
        self._commands += 1
        job = self._jobs / str(self._commands)
        job.mkdir()
        lines = [f"export {name}={shlex.quote(value)}" for name, value in (env or {}).items()]
        lines += [f"cd {shlex.quote(os.getcwd())}", f"exec {shlex.join(arguments)}"]
        (job / "command").write_text("\n".join(lines) + "\n")
        self.process.stdin.write(f"{self._commands} {timeout:g}\n".encode())
        self.process.stdin.flush()
        self._expect(f"ended {self._commands}", timeout + GRACE)
        status = int((job / "status").read_text())
        out, err = ((job / name).read_text(errors="replace") for name in ("out", "err"))
        return Completed(status, out, err, timed_out=status in (124, 137))

    def launch(
        self,
        host: str,
        ranks: int,
        program: list[str],
        env: dict[str, str] | None = None,
        timeout: float = 300,
        nearfield: bool = True,
        options: tuple[str, ...] = (),
    ) -> Completed:
        """Runs `program` on `ranks` ranks of `host`, an MPI of the checkout, in the guest."""
        added = {
            name: value
            for name, value in environment(host, nearfield, env).items()
            if os.environ.get(name) != value
        }
        return self.run(command(host, ranks, program, options), added, timeout)

    def _expect(self, line: str, seconds: float) -> None:
        """Waits until the guest has said `line`."""
        end = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            while True:
                *lines, self._unread = self._unread.split(b"\n")
                if line.encode() in (said.strip() for said in lines):
                    return
                left = end - time.monotonic()
                if left <= 0 or not selector.select(left):
                    raise Lost(f"the guest did not say {line!r} within {seconds:g} s\n{self._last_words()}")
                more = os.read(self.process.stdout.fileno(), 4096)
                if not more:
                    raise Lost(f"the guest ended before it said {line!r}\n{self._last_words()}")
                self._unread += more

    def _last_words(self) -> str:
        texts = ((self.scratch / name) for name in ("console", "emulator"))
        return "\n".join(text.read_text(errors="replace")[-2000:] for text in texts if text.exists())

    def _end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self.process.poll() is None

    def close(self) -> None:
        """Ends the guest and removes what it used."""
        self._stack.close()

    def __enter__(self) -> Guest:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, why: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _sweep() -> None:
    """Removes folders of guests whose process was killed."""
    for folder in CACHE.glob(f"{RUNNING}*"):
        if not Path("/proc", folder.name.split("-")[1]).exists():
            shutil.rmtree(folder, ignore_errors=True)
