"""The average of a vector over processes that share nothing but a directory, by Nearfield's C API: neither MPI nor PyTorch.

    mkdir meeting; python average.py 0 2 meeting & python average.py 1 2 meeting

average.c is the same in C, and may be one of the processes.
"""

import array
import ctypes
import sys
import time
from pathlib import Path

from nearfield import engine


class Meeting:
    """Whatever the processes have will do: here each writes a file, and reads those of the others once they are there."""

    def __init__(self, directory: Path, rank: int, size: int) -> None:
        self.directory, self.rank, self.size = directory, rank, size
        self.round = 0

    def exchange(self, mine: bytes) -> list[bytes]:
        written = self.directory / f"writing.{self.rank}"
        written.write_bytes(mine)
        written.rename(self.directory / f"{self.round}.{self.rank}")
        files = [self.directory / f"{self.round}.{r}" for r in range(self.size)]
        until = time.monotonic() + 30
        while not all(file.exists() for file in files):
            if time.monotonic() > until:
                raise TimeoutError(f"some of {self.size} processes have not come to {self.directory}")
            time.sleep(0.001)
        self.round += 1
        return [file.read_bytes() for file in files]


def main(rank: int, size: int, directory: Path) -> None:
    nf = engine.library()
    group = engine.join(rank, size, Meeting(directory, rank, size).exchange)
    engine.check(nf.nf_set_timeout(group, 30))

    vector = array.array("f", [rank + i % 10 for i in range(100000)])
    address, count = vector.buffer_info()
    request = ctypes.c_void_p()
    started = nf.nf_allreduce(
        group, address, address, count, engine.FLOAT32, engine.AVG, ctypes.byref(request)
    )
    engine.check(started)
    # ... something else ...
    engine.check(nf.nf_wait(ctypes.byref(request), 0, None))
    print(f"rank {rank} of {size}: the average begins with {vector[0]:g}, {vector[1]:g}")

    # A message around the ring.
    token, came, message = ctypes.c_int(rank), ctypes.c_int(), engine.Message()
    engine.check(nf.nf_send(group, ctypes.byref(token), 4, (rank + 1) % size, 0, ctypes.byref(request)))
    engine.check(nf.nf_receive(group, ctypes.byref(came), 4, engine.ANY, 0, ctypes.byref(message), None))
    engine.check(nf.nf_wait(ctypes.byref(request), 0, None))
    print(f"rank {rank} has a message of {message.bytes} bytes from rank {message.source}")
    engine.check(nf.nf_close(group))


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit("usage: average.py RANK SIZE DIRECTORY")
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
