"""Whom calls were served by, out of Nearfield's performance variables (docs/reference/statistics.md)."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_int, c_ulonglong, c_void_p

from mpi4py import MPI

from tests.mpi.oracle.running import BY_HOST, LOADED, PROGRAM

LENGTH = 200


def checked(code: int) -> None:
    """Raises where a call of the tools interface fails."""
    if code:
        raise RuntimeError(f"MPI_T call: {code}")


class Counters:
    """Calls that Nearfield carried, and what it left to the host, since the variables were opened."""

    def __init__(self) -> None:
        self.handles: dict[str, c_void_p] = {}
        self.session = c_void_p()
        if not LOADED:
            return
        checked(PROGRAM.MPI_T_init_thread(c_int(MPI.THREAD_MULTIPLE), byref(c_int())))
        checked(PROGRAM.MPI_T_pvar_session_create(byref(self.session)))
        number, index = c_int(), c_int()
        checked(PROGRAM.MPI_T_pvar_get_num(byref(number)))
        for at in range(number.value):
            name, of_class = ctypes.create_string_buffer(LENGTH), c_int()
            length, ints = c_int(LENGTH), [c_int() for _ in range(6)]
            nothing, description = c_void_p(), c_int(0)
            type_, enum = c_void_p(), c_void_p()
            code = PROGRAM.MPI_T_pvar_get_info(
                c_int(at), name, byref(length), byref(ints[0]), byref(of_class), byref(type_), byref(enum),
                nothing, byref(description), *[byref(one) for one in ints[1:5]],
            )  # fmt: skip
            called = name.value.decode().removeprefix("nearfield_")
            if code or not name.value.startswith(b"nearfield_"):
                continue
            if called.endswith("_calls") or "_to_the_host" in called or called == "windows":
                handle, index = c_void_p(), c_int()
                checked(
                    PROGRAM.MPI_T_pvar_handle_alloc(
                        self.session, c_int(at), None, byref(handle), byref(index)
                    )
                )
                self.handles[called] = handle
        assert self.handles, "Nearfield shows no variables"

    def read(self) -> dict[str, int]:
        """All of them."""
        values = {}
        for name, handle in self.handles.items():
            value = c_ulonglong()
            checked(PROGRAM.MPI_T_pvar_read(self.session, handle, byref(value)))
            values[name] = value.value
        return values

    def since(self, before: dict[str, int]) -> tuple[dict[str, int], dict[str, int]]:
        """Calls that were carried, by operation, and those that went to the host though no case said so, by the variable
        that counts them."""
        if not before:
            return {}, {}
        grown = {name: value - before[name] for name, value in self.read().items()}
        operations = [
            name.removesuffix("_calls") for name in grown if name.endswith("_calls") and name != "host_calls"
        ]
        carried = {op: grown[f"{op}_calls"] - grown[f"{op}_to_the_host"] for op in operations}
        carried["windows"] = grown.get("windows", 0)
        sums = [f"{op}_to_the_host" for op in operations]
        for op, calls in BY_HOST.items():
            grown[f"{op}_to_the_host_switched_off"] -= calls
        BY_HOST.clear()
        left = {name: n for name, n in grown.items() if n and "_to_the_host" in name and name not in sums}
        return {op: n for op, n in carried.items() if n}, left
