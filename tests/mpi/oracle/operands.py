"""Elements that reductions combine: their types, the values that ranks give, and the operators with their truth in numpy."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from mpi4py import MPI

from tests.mpi.oracle.layouts import DTYPES, Kind, kind, plain

Function = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Operator:
    """What combines elements, here and there. `rounds`: other hosts, or other orders, may give other bits; `ordered`: it is
    not associative, so that a host may do as it likes."""

    name: str
    op: MPI.Op
    function: Function
    users: bool = False
    rounds: bool = False
    ordered: bool = False


@dataclass(frozen=True)
class Operand:
    """Elements of a type; `dtype` is that of their bytes in the order of the type, without gaps."""

    name: str
    kind: Kind
    dtype: np.dtype
    operators: dict[str, Operator]

    def values(self, seed: list[int], count: int, composed: bool) -> np.ndarray:
        """What a rank gives; small values, so that integers do not depend on wrapping of the host."""
        draw = np.random.default_rng(seed)
        if self.dtype.names:
            made = np.zeros(count, self.dtype)
            for name in self.dtype.names:
                made[name] = draw.integers(0, 100 if name == "i" else 4 if name == "v" else 1 << 31, count)
            return made
        if self.name == "truth":
            return (draw.integers(0, 3, count) != 0).astype(self.dtype)
        if self.dtype.kind in "iu":
            made = draw.integers(0, 5, count).astype(self.dtype)
            return (made * 0x1_0003 + 0x3_0001).astype(self.dtype) if composed else made
        made = draw.standard_normal(count)
        return (
            (made + 1j * made[::-1]).astype(self.dtype) if self.dtype.kind == "c" else made.astype(self.dtype)
        )


def fold(operator: Operator, parts: list[np.ndarray]) -> np.ndarray:
    """From left to right."""
    with np.errstate(all="ignore"):
        return functools.reduce(lambda a, b: operator.function(a, b).astype(a.dtype), parts)


def users(dtype: np.dtype, function: Function, commutes: bool) -> MPI.Op:
    """An operator of the program's."""

    def combine(given: MPI.buffer, result: MPI.buffer, _: MPI.Datatype) -> None:
        a, b = np.frombuffer(given, dtype), np.frombuffer(result, dtype)
        made = function(a, b)
        for name in dtype.names or ():
            b[name] = made[name]
        if not dtype.names:
            b[:] = made

    return MPI.Op.Create(combine, commute=commutes)


def composed(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Elementwise x -> a x + b after another, `a` and `b` the halves of a word: associative, but the order counts."""
    a, b, c, d = a >> 16, a & 0xFFFF, b >> 16, b & 0xFFFF
    return ((a * c & 0xFFFF) << 16 | (a * d + b & 0xFFFF)).astype("u4")


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of matrices of two by two, which does not commute."""
    result = b.copy()
    result["a"], result["b"] = a["a"] * b["a"] + a["b"] * b["c"], a["a"] * b["b"] + a["b"] * b["d"]
    result["c"], result["d"] = a["c"] * b["a"] + a["d"] * b["c"], a["c"] * b["b"] + a["d"] * b["d"]
    return result


def extreme(better: Function) -> Function:
    """MPI_MINLOC and MPI_MAXLOC."""

    def chosen(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        first = better(a["v"], b["v"]) | ((a["v"] == b["v"]) & (a["i"] < b["i"]))
        return np.where(first, a, b)

    return chosen


TRUTH: dict[str, Function] = {
    "land": lambda a, b: (a != 0) & (b != 0),
    "lor": lambda a, b: (a != 0) | (b != 0),
    "lxor": lambda a, b: (a != 0) != (b != 0),
}
NUMBERS: dict[str, Function] = {"sum": np.add, "prod": np.multiply}
ORDER: dict[str, Function] = {"min": np.minimum, "max": np.maximum}
BITS: dict[str, Function] = {"band": np.bitwise_and, "bor": np.bitwise_or, "bxor": np.bitwise_xor}
PAIR = {"minloc": extreme(np.less), "maxloc": extreme(np.greater)}


def predefined(functions: dict[str, Function], rounds: tuple[str, ...] = ()) -> dict[str, Operator]:
    """MPI's own."""
    return {
        name: Operator(name, getattr(MPI, name.upper()), function, rounds=name in rounds)
        for name, function in functions.items()
    }


def operands() -> dict[str, Operand]:
    """By name."""

    def first(given: MPI.buffer, result: MPI.buffer, _: MPI.Datatype) -> None:
        result[:] = given

    def halved(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return a * 0.5 - b

    of_all = {"first": Operator("first", MPI.Op.Create(first, commute=False), lambda a, b: a, users=True)}
    made = {}
    for name in DTYPES:
        functions = NUMBERS | (ORDER if name[0] != "c" else {}) | ((TRUTH | BITS) if name[0] in "iu" else {})
        operators = predefined(functions, ("sum", "prod") if name[0] in "fc" else ()) | of_all
        made[name] = Operand(name, plain(name), np.dtype(name), operators)
    u4, i8, f8 = (np.dtype(name) for name in ("u4", "i8", "f8"))
    made["u4"].operators["composed"] = Operator("composed", users(u4, composed, False), composed, users=True)
    made["i8"].operators["add"] = Operator("add", users(i8, np.add, True), np.add, users=True)
    made["f8"].operators["halved"] = Operator(
        "halved", users(f8, halved, False), halved, users=True, rounds=True, ordered=True
    )
    four = kind(MPI.LOGICAL, [0], 4)
    made["truth"] = Operand("truth", four, np.dtype("i4"), predefined(TRUTH))
    pair = Kind(MPI.DOUBLE_INT, 1, np.arange(12), 16)
    made["pair"] = Operand("pair", pair, np.dtype([("v", "f8"), ("i", "i4")]), predefined(PAIR))
    packed = np.dtype([(name, "u4") for name in "abcd"])
    gaps = np.dtype({"names": list("abcd"), "formats": ["u4"] * 4, "offsets": [0, 16, 8, 24], "itemsize": 28})
    dense = kind(MPI.UNSIGNED.Create_contiguous(4), range(0, 16, 4), 4)
    places = MPI.UNSIGNED.Create_hindexed([1] * 4, [0, 16, 8, 24])
    spread = kind(places.Create_resized(0, 28), [0, 16, 8, 24], 4)
    places.Free()
    for name, type, dtype in (("matrix", dense, packed), ("spread", spread, gaps)):
        operator = Operator("product", users(dtype, product, False), product, users=True)
        made[name] = Operand(name, replace(type, units=1), packed, {"product": operator})
    return made


OPERANDS = operands()
