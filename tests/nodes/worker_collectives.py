"""Collective calls over nodes, each compared with what arithmetic says; programs come as files (feeding.py).

    worker_collectives.py DIRECTORY            programs as they come
    worker_collectives.py DIRECTORY CASES      those of one file, to look at a case that failed

A case has op, comm (a name below), dtype, count, root, in_place, operator, seed, row (forced, or null), times (that a
reduction of floating-point numbers is made again, for the same bits), rows (which have to give these bits too), fold
(which says that they are those of the left fold in rank order) and host_errs (what the host serves is not looked at).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

import numpy as np
from calls import COMPOSED, REDUCTIONS, SHAPES, SHIFTS, Buffer, Call, hint, served
from mpi4py import MPI

WORLD = MPI.COMM_WORLD
FILES = Path(sys.argv[1])
OPERATORS = {
    "sum": MPI.SUM,
    "prod": MPI.PROD,
    "min": MPI.MIN,
    "max": MPI.MAX,
    "lxor": MPI.LXOR,
    "bor": MPI.BOR,
    "composed": COMPOSED,
}


def communicators() -> dict[str, MPI.Intracomm]:
    """By name; MPI.COMM_NULL at ranks that are no members."""
    p, me = WORLD.size, WORLD.rank
    draw = random.Random(p)
    colours, keys = [draw.randrange(2) for _ in range(p)], draw.sample(range(p), p)
    return {
        "world": WORLD,
        "dup": WORLD.Dup(),
        "reversed": WORLD.Split(0, -me),
        "shuffled": WORLD.Split(0, keys[me]),
        "split": WORLD.Split(colours[me], keys[me]),
        "odd": WORLD.Split(me % 2, me),
        "but one": WORLD.Split(0 if me or p == 1 else MPI.UNDEFINED, me),
        "near": WORLD.Split_type(MPI.COMM_TYPE_SHARED),
    }


COMMS = communicators()
NODE_OF = WORLD.allgather(MPI.Get_processor_name())


def spans_nodes(comm: MPI.Intracomm) -> bool:
    """Whether the members live on several nodes."""
    members = MPI.Group.Translate_ranks(comm.group, list(range(comm.size)), WORLD.group)
    return len({NODE_OF[rank] for rank in members}) > 1


def run_case(case: dict, tally: Counter) -> str:
    """One call, and the same again where bits are compared; a digest of what it gave this rank."""
    fresh = case["comm"] == "fresh"
    comm = WORLD.Dup() if fresh else COMMS[case["comm"]]
    if comm == MPI.COMM_NULL:
        return ""
    own = random.Random(
        case["seed"] * 100 + WORLD.rank
    )  # layouts and alignments are each rank's own business
    p, me, op, dtype = comm.size, comm.rank, case["op"], case["dtype"]
    reduces = op in REDUCTIONS
    one = Call(
        op, comm, dtype, case["count"], case["root"] % p, OPERATORS[case["operator"]], case["in_place"]
    )
    shape = "plain" if reduces or case["count"] == 0 else own.choice(SHAPES)
    shift, allocated = own.choice(SHIFTS), own.random() < 0.2
    send = Buffer(dtype, one.sends, shape, shift, allocated)
    recv = Buffer(dtype, one.receives, shape, shift, allocated)
    parts = [one.contribution(rank, case["seed"]) for rank in range(p)]
    wanted = one.gives(parts)
    length = 0 if wanted is None else len(wanted)

    def call(row: str | None) -> np.ndarray:
        if row or case["row"]:
            hint(comm, nearfield_algorithm=f"{op}:{row}" if row else " ")
        result = one.make(parts[me], send, recv)[:length]
        tally[op, row or "", served(), spans_nodes(comm)] += 1
        assert send.intact(), "wrote outside the send buffer"
        assert recv.intact(), "wrote outside the receive buffer"
        return result

    got = call(case["row"])
    if wanted is not None and not (case["host_errs"] and served() == "host"):
        compare(case, one, parts, got, wanted)
    if reduces and dtype[0] in "fc":
        for time_ in range(case["times"]):
            assert call(case["row"]).tobytes() == got.tobytes(), f"other bits in call {time_ + 2}"
        for row in case["rows"]:
            assert call(row).tobytes() == got.tobytes(), f"other bits by {row}"
    if case["row"]:
        hint(comm, nearfield_algorithm=" ")
    send.free()
    recv.free()
    if fresh:
        comm.Free()
    return hashlib.sha256(got.tobytes()).hexdigest()


def compare(case: dict, one: Call, parts: list[np.ndarray], got: np.ndarray, wanted: np.ndarray) -> None:
    """Asserts that a result is right: integers and what is only moved bit for bit, sums within their rounding."""
    same = got.tobytes() == wanted.tobytes()
    if not same and one.op in REDUCTIONS and one.dtype[0] in "fc" and not case["fold"]:
        sizes = Call(one.op, one.comm, "f8", one.count, one.root, one.operation, False)
        scale = sizes.gives([abs(part).astype("f8") for part in parts])
        error = abs(got - wanted) / np.maximum(scale, 1e-300)
        allowed = 4 * one.comm.size * np.finfo(one.dtype).eps if case["operator"] in ("sum", "prod") else 0
        same = bool((error <= allowed).all())
    if not same:
        where = np.flatnonzero(got != wanted)[:5]
        what = " (the left fold)" if case["fold"] else ""
        raise AssertionError(f"differs at {where}: {got[where]}, not {wanted[where]}{what}")


def run_program(cases: list[dict], name: str) -> None:
    """Runs cases and leaves the answer in a file; the first failure ends the job."""
    tally: Counter = Counter()
    digests = []
    with open(FILES / f"at.{WORLD.rank}", "w") as at:
        for number, case in enumerate(cases):
            at.seek(0)
            at.write(str(number))
            at.truncate()
            at.flush()
            try:
                digests.append(run_case(case, tally))
            except Exception:
                text = f"rank {WORLD.rank}: {json.dumps(case)}\n{traceback.format_exc()}"
                appear(f"{name}.failed.{WORLD.rank}", text)
                time.sleep(0.1)
                WORLD.Abort(3)
    appear(
        f"{name}.done.{WORLD.rank}",
        json.dumps({"served": [[*key, n] for key, n in tally.items()], "digests": digests}),
    )


def appear(name: str, text: str) -> None:
    """Writes a file that is whole when it is seen."""
    hidden = FILES / f"hidden.{WORLD.rank}"
    hidden.write_text(text)
    hidden.rename(FILES / name)


def main() -> None:
    """Programs until the end."""
    if len(sys.argv) > 2:
        run_program(json.loads(Path(sys.argv[2]).read_text()), "given")
        return
    number = 0
    while not (FILES / "end").exists():
        with contextlib.suppress(FileNotFoundError):
            program = (FILES / f"{number}.json").read_text()
            run_program(json.loads(program), str(number))
            number += 1
        WORLD.Iprobe()  # what others still wait for goes out only while its sender calls MPI
        time.sleep(0.002)


main()
