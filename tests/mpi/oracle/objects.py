"""Cases of nearfield.mpi4py: what ranks get is what mpi4py's own calls give them."""

from __future__ import annotations

import contextlib
import gc
import importlib
import sys
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy
from mpi4py import MPI

import nearfield.mpi4py as ours
from nearfield.mpi4py import collectives as collectives_py
from nearfield.mpi4py import messages as messages_py
from nearfield.mpi4py import packing

WORLD = MPI.COMM_WORLD


class Thing:
    """An instance with slots of several kinds."""

    def __init__(self, name: str, array: numpy.ndarray) -> None:
        self.name, self.array, self.itself = name, array, self

    def __eq__(self, other: Any) -> bool:
        return type(other) is Thing and self.name == other.name and same(self.array, other.array)


class Unloadable:
    """Raises where it is received."""

    def __init__(self, array: numpy.ndarray | None = None) -> None:
        self.array = array

    def __reduce__(self) -> tuple:
        return refuse, (self.array,)


def refuse(array: numpy.ndarray | None) -> None:
    """What unpickling calls."""
    raise LookupError(f"not loaded, {0 if array is None else array.nbytes} bytes")


def drawn(rank: int) -> list[Any]:
    """Objects of a rank."""
    numbers = numpy.arange(30_000, dtype=numpy.float64) + rank
    grid = numbers.reshape(100, 300)
    objects: list[Any] = [
        None,
        rank,
        "text" * rank,
        {"rank": rank, "nested": [{"deep": (rank, {rank})}, 1.5, None]},
        list(range(rank, 10_000 + rank)),
        bytes([rank]) * 100_000,
        bytearray([rank]) * 100_000,
        ValueError("an exception", rank),
        numbers,
        numpy.asfortranarray(grid),
        grid[::2, ::3],
        grid.T[5:],
        numpy.array(rank),
        numpy.empty((0, 3)),
        numpy.zeros(20_000, dtype=[("a", "i4"), ("b", "f8", 2)]),
        numpy.array(["x", rank], dtype=object),
        *(numpy.full(40_000, rank, dtype) for dtype in ("?", "u1", "i2", "f4", "c16", "M8[s]", "U3")),
        numpy.full(511, rank, "u1"),
        {f"array {index}": numpy.full(index * 100, rank + index) for index in range(100)},
        [numbers] * 3,
        Thing(f"of {rank}", numbers),
        numpy.full(3 << 20, rank, "u1"),
    ]
    with contextlib.suppress(ImportError):
        pandas = importlib.import_module("pandas")
        frame = pandas.DataFrame(
            {"number": numbers, "whole": numpy.arange(30_000), "text": ["a", "b"] * 15_000}
        )
        objects += [frame, frame["number"]]
    with contextlib.suppress(ImportError):
        torch = importlib.import_module("torch")
        tensor = torch.arange(30_000, dtype=torch.bfloat16) + rank
        objects += [
            tensor,
            tensor.reshape(100, 300).T,
            [tensor, tensor[10:]],
            torch.nn.Parameter(torch.ones(30_000)),
        ]
        objects += [torch.tensor(rank), torch.empty(0), {"weights": torch.full((200, 200), float(rank))}]
    return objects


def same(one: Any, other: Any) -> bool:
    """Whether two objects are equal, with types and arrays."""
    if type(one) is not type(other):
        return False
    if isinstance(one, numpy.ndarray):
        alike = (one.dtype, one.shape, one.flags.writeable) == (
            other.dtype,
            other.shape,
            other.flags.writeable,
        )
        return (
            alike
            and one.flags.f_contiguous == other.flags.f_contiguous
            and bool(numpy.array_equal(one, other))
        )
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, BaseException):
        return same(one.args, other.args)
    if hasattr(one, "equals"):  # of pandas
        return one.equals(other)
    if type(one).__module__.startswith("torch"):
        alike = (one.dtype, one.requires_grad, one.stride()) == (
            other.dtype,
            other.requires_grad,
            other.stride(),
        )
        return alike and bool((one == other).all()) and one.shape == other.shape
    return bool(one == other)


def check(got: Any, expected: Any, what: str) -> None:
    """Raises AssertionError with what it was about."""
    assert same(got, expected), f"{what}: {str(got)[:300]} instead of {str(expected)[:300]}"


@contextlib.contextmanager
def settings(**values: int) -> Iterator[None]:
    """Other constants, wherever they are."""
    places = [
        (home, name)
        for home in (packing, messages_py, collectives_py)
        for name in values
        if hasattr(home, name)
    ]
    before = [getattr(home, name) for home, name in places]
    try:
        for home, name in places:
            setattr(home, name, values[name])
        yield
    finally:
        for (home, name), value in zip(places, before, strict=True):
            setattr(home, name, value)


def collectives(members: list[int] | None = None, **constants: int) -> int:
    """Every collective, object and root, on all ranks or on `members`; how many calls."""
    part = WORLD if members is None else WORLD.Split(WORLD.rank in members, -WORLD.rank)
    comm, plain, calls = ours.Intracomm(part), part, 0
    rank, size = comm.rank, comm.size
    each = [drawn(r) for r in range(size)]
    with settings(**constants):
        for number in range(len(each[0])):
            row = [objects[number] for objects in each]
            for root in {0, size // 2, size - 1}:
                mine, at = row[rank], f"object {number}, root {root}"
                check(comm.bcast(mine if rank == root else None, root), row[root], f"bcast of {at}")
                check(comm.gather(mine, root), row if rank == root else None, f"gather of {at}")
                check(comm.scatter(row if rank == root else None, root), mine, f"scatter of {at}")
            check(comm.allgather(row[rank]), row, f"allgather of object {number}")
            check(comm.alltoall(row[rank:] + row[:rank]), alltoall(row, rank), f"alltoall of object {number}")
            calls += 5
        mixed = [each[r][(r * 7 + 3) % len(each[r])] for r in range(size)]
        check(comm.allgather(mixed[rank]), mixed, "allgather of several kinds")
        check(comm.alltoall(mixed), [mixed[rank]] * size, "alltoall of several kinds")
    for objects in each[:1]:
        check(plain.allgather(objects[3]), [objects[3]] * size, "mpi4py's own allgather beside ours")
    assert comm.allreduce(rank) == sum(range(size))
    if members is not None:
        comm.Free()
    return calls


def alltoall(row: list[Any], rank: int) -> list[Any]:
    """What the rank gets where each rank sends the row, rotated by its number."""
    size = len(row)
    return [row[(rank + source) % size] for source in range(size)]


def messages(**constants: int) -> None:
    """Objects around a ring, by every way to send and to receive."""
    comm, status = ours.Intracomm(WORLD), MPI.Status()
    rank, size = comm.rank, comm.size
    right, left = (rank + 1) % size, (rank - 1) % size
    buffer = MPI.Alloc_mem(256 << 20)
    MPI.Attach_buffer(buffer)
    with settings(**constants):
        mine, theirs = drawn(rank), drawn(left)
        for tag, (obj, expected) in enumerate(zip(mine, theirs, strict=True)):
            about = f"object {tag}"
            check(comm.sendrecv(obj, right, tag, None, left, tag, status), expected, f"sendrecv of {about}")
            assert (status.source, status.tag) == (left, tag) and status.Get_elements(MPI.BYTE) > 0
            requests = [send(obj, right, tag) for send in (comm.isend, comm.issend, comm.ibsend)]
            check(comm.recv(None, left, tag, status), expected, f"recv of {about}")
            check(comm.mprobe(left, tag).recv(), expected, f"mprobe and recv of {about}")
            message = None
            while message is None:
                message = comm.improbe(left, tag, status)
            assert status.Get_elements(MPI.BYTE) > 0
            check(message.irecv().wait(status), expected, f"improbe and irecv of {about}")
            assert (status.source, status.tag) == (left, tag) and status.Get_elements(MPI.BYTE) > 0
            ours.Request.waitall(requests)
            comm.bsend(obj, right, tag)
            check(comm.recv(None, left, tag), expected, f"bsend and recv of {about}")
        # In order, whatever is sent and however it is received.
        requests = [comm.isend(obj, right, 5) for obj in mine]
        received = [comm.mprobe(left, 5).irecv() for _ in mine[::2]]
        received = ours.Request.waitall(received)
        received += [comm.recv(None, left, 5) for _ in mine[1::2]]
        check(received, theirs, "objects in order")
        ours.Request.waitall(requests)
        # Matched in one order, received in another.
        requests = [comm.isend(obj, right, 6) for obj in mine]
        matched = [comm.mprobe(left, 6) for _ in mine]
        check([one.recv() for one in reversed(matched)], theirs[::-1], "matched objects")
        ours.Request.waitall(requests)
        # From any source, several under way.
        for obj in mine:
            for dest in range(size):
                requests.append(comm.isend((rank, obj), dest, 7))
        by_source: dict[int, list] = {source: [] for source in range(size)}
        for _ in range(size * len(mine)):
            source, obj = comm.recv(None, MPI.ANY_SOURCE, MPI.ANY_TAG, status)
            assert source == status.source and status.tag == 7
            by_source[source].append(obj)
        for source, objects in by_source.items():
            check(objects, drawn(source), f"objects of rank {source}")
        ours.Request.waitall(requests)
    WORLD.Barrier()  # nobody receives from anybody by any tag any more
    # What mpi4py sends, and what it receives of what has no parts.
    request = WORLD.isend({"of": rank}, right)
    assert comm.recv(None, left) == {"of": left}
    request.wait()
    own = comm.isend({"of": rank}, right)
    assert WORLD.recv(None, left) == {"of": left}
    own.wait()
    MPI.Detach_buffer()
    MPI.Free_mem(buffer)


def threads(**constants: int) -> None:
    """Threads of one communicator, each with its own tag: each waits only for its partner."""
    if MPI.Query_thread() < MPI.THREAD_MULTIPLE:
        return
    comm = ours.Intracomm(WORLD)
    right, left = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    failures: list[BaseException] = []

    def exchange(tag: int) -> None:
        try:
            for number in range(20):
                obj = {"array": numpy.full(50_000 * (number % 3 + 1), tag + number), "number": number}
                if (comm.rank + tag) % 2:
                    comm.send(obj, right, tag)
                    got = comm.recv(None, left, tag)
                else:
                    got = comm.sendrecv(obj, right, tag, None, left, tag)
                check(got, obj, f"object {number} of thread {tag}")
        except BaseException as failure:
            failures.append(failure)

    with settings(**constants):
        running = [threading.Thread(target=exchange, args=[tag]) for tag in range(4)]
        for one in running:
            one.start()
        for one in running:
            one.join()
    if failures:
        raise failures[0]


def own_memory() -> None:
    """Received arrays may be written to, and no other rank sees it; nor does it matter what becomes of the sent one."""
    comm = ours.Intracomm(WORLD)
    rank, size = comm.rank, comm.size
    for length in (100, 100_000, 5_000_000):
        sent = numpy.full(length, rank)
        arrays = (
            comm.allgather(sent)
            + comm.alltoall([sent] * size)
            + [comm.scatter([sent] * size if not rank else None)]
        )
        got = comm.bcast(sent, size - 1)
        arrays.append(got if rank != size - 1 else got.copy())  # the root has its own array
        arrays += comm.gather(sent) or []
        arrays.append(comm.sendrecv(sent, (rank + 1) % size))
        expected = [array[0] for array in arrays]
        sent[:] = 1000
        comm.barrier()
        for array, value in zip(arrays, expected, strict=True):
            assert (array == value).all(), (length, value)
            array += rank + 1
        comm.barrier()
        for array, value in zip(arrays, expected, strict=True):
            assert (array == value + rank + 1).all(), (length, value)


def errors() -> None:
    """Objects that cannot be sent, or not be loaded: what comes after them is not disturbed."""
    comm = ours.Intracomm(WORLD)
    rank, size = comm.rank, comm.size
    right, left = (rank + 1) % size, (rank - 1) % size
    for send in (comm.send, comm.isend, comm.ssend):
        try:
            send(lambda: None, right)
        except Exception as error:
            assert "pickle" in str(error), error
        else:
            raise AssertionError("a lambda was sent")
    for refused in (Unloadable(), Unloadable(numpy.zeros(100_000))):
        request = comm.isend(refused, right)
        calls = [
            partial(comm.recv, None, left),
            partial(comm.bcast, refused),
            partial(comm.scatter, [refused] * size),
            partial(comm.allgather, [0, refused]),
            partial(comm.alltoall, [refused] * size),
        ]
        for call in calls:
            try:
                call()
            except LookupError as error:
                assert "not loaded" in str(error)
            else:
                raise AssertionError("it was loaded")
            check(comm.allgather(drawn(rank)), [drawn(r) for r in range(size)], "what comes after an error")
        request.wait()
        try:
            gathered = comm.gather(refused)
            assert rank and gathered is None
        except LookupError:
            assert rank == 0
        check(comm.sendrecv(drawn(rank), right), drawn(left), "what comes after an error")


def huge(length: int) -> None:
    """Arrays of so many bytes, with a mark at their end."""
    comm = ours.Intracomm(WORLD)
    rank, last = comm.rank, comm.size - 1
    sent = numpy.zeros(length, "u1") if not rank else None
    if sent is not None:
        sent[-1] = 7
        comm.send(sent, last)
    elif rank == last:
        got = comm.recv(None, 0)
        assert got.nbytes == length and got[-1] == 7
        del got
    comm.barrier()
    got = comm.bcast(sent)
    assert got.nbytes == length and got[-1] == 7
    del got
    gc.collect()
    got = comm.bcast(bytes(length) if not rank else None)  # in the pickle itself
    assert len(got) == length


def pkl5s_own(suite: str, **constants: int) -> int:
    """mpi4py's tests of pkl5, with our classes in their place; how many ran."""
    import unittest

    from mpi4py.util import pkl5

    for name in (
        "Pickle",
        "pickle",
        "_BigMPI",
        "_bigmpi",
    ):  # what the tests look into and do not need to have an effect
        setattr(ours, name, getattr(pkl5, name))
    sys.path.insert(0, suite)
    sys.modules["mpi4py.util.pkl5"] = sys.modules["mpi4py.util"].pkl5 = ours
    try:
        tests = unittest.defaultTestLoader.loadTestsFromName("test_util_pkl5")
        with settings(**constants):
            result = unittest.TextTestRunner(sys.stderr).run(tests)
    finally:
        sys.modules["mpi4py.util.pkl5"] = sys.modules["mpi4py.util"].pkl5 = pkl5
        sys.path.remove(suite)
    wrong = [text for _, text in (*result.failures, *result.errors)]
    assert not wrong, "\n".join(wrong)
    return result.testsRun
