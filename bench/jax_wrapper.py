"""A wrapper that MPItrampoline, and so JAX, can load: the functions that JAX calls, for one host's MPI.

MPItrampoline is a table of MPI functions that a program has instead of an MPI library. It opens a wrapper, which translates handles and
constants. MPIwrapper (docs/user/jax.md) translates all of MPI; this one has what JAX's collectives call, so that tests need no more.
"""

from __future__ import annotations

import mmap
import re
import subprocess
from pathlib import Path

from nearfield.hosts import Host, launcher_environment, tool_of

# Parameters of a function: handles by value (C communicator, D type, O operator), pointers to handles that the call changes (c
# communicator, r request), n an int, p a pointer that passes as it is, s a status, which nobody reads.
FUNCTIONS = {
    "Init": "pp",
    "Init_thread": "ppnp",
    "Initialized": "p",
    "Finalized": "p",
    "Finalize": "",
    "Is_thread_main": "p",
    "Query_thread": "p",
    "Get_version": "pp",
    "Get_library_version": "pp",
    "Error_string": "npp",
    "Error_class": "np",
    "Abort": "Cn",
    "Comm_rank": "Cp",
    "Comm_size": "Cp",
    "Comm_split": "Cnnc",
    "Comm_dup": "Cc",
    "Barrier": "C",
    "Bcast": "pnDnC",
    "Allreduce": "ppnDOC",
    "Reduce": "ppnDOnC",
    "Reduce_scatter": "pppDOC",
    "Reduce_scatter_block": "ppnDOC",
    "Allgather": "pnDpnDC",
    "Alltoall": "pnDpnDC",
    "Send": "pnDnnC",
    "Isend": "pnDnnCr",
    "Irecv": "pnDnnCr",
    "Sendrecv": "pnDnnpnDnnCs",
}
HANDLES = {"C": "MPI_Comm", "D": "MPI_Datatype", "O": "MPI_Op", "c": "MPI_Comm", "r": "MPI_Request"}
# Those that are no constants of C in every MPI.
VARIABLES = ("F_STATUS_IGNORE", "F_STATUSES_IGNORE", "UNWEIGHTED", "WEIGHTS_EMPTY")
BEGIN = """
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
typedef uintptr_t Handle;
const int mpiabi_version_major = 2, mpiabi_version_minor = 9, mpiabi_version_patch = 0;
const int mpiabi_loaded_version_major = 2, mpiabi_loaded_version_minor = 9, mpiabi_loaded_version_patch = 0;
const int mpiwrapper_version_major = 2, mpiwrapper_version_minor = 9, mpiwrapper_version_patch = 0;
void mpiwrapper_export_fortran_constants_(void) {}
static int missing(const char* name) {
  fprintf(stderr, "%s is not in this wrapper\\n", name);
  abort();
}
double MPIABI_Wtime(void) { return MPI_Wtime(); }
double MPIABI_Wtick(void) { return MPI_Wtick(); }
int MPIABI_Comm_free(Handle* handle) {  // JAX frees them after MPI_Finalize, too
  int finalized = 0;
  MPI_Comm own = (MPI_Comm)*handle;
  MPI_Finalized(&finalized);
  const int code = finalized ? MPI_SUCCESS : MPI_Comm_free(&own);
  *handle = (Handle)(intptr_t)MPI_COMM_NULL;
  return code;
}
int MPIABI_Waitall(int count, Handle* handles, void* statuses) {
  MPI_Request* own = malloc((count + 1) * sizeof *own);
  for (int i = 0; i < count; i++) own[i] = (MPI_Request)handles[i];
  const int code = MPI_Waitall(count, own, MPI_STATUSES_IGNORE);
  for (int i = 0; i < count; i++) handles[i] = (Handle)(intptr_t)own[i];
  free(own);
  return code;
}
int MPIABI_Wait(Handle* handle, void* status) { return MPIABI_Waitall(1, handle, status); }
"""
WRITTEN_OUT = {"Comm_free", "Wtime", "Wtick", "Wait", "Waitall"}


def names_in(library: Path) -> list[str]:
    """The names that the table in `library` looks up in its wrapper."""
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        found = {match[1].decode() for match in re.finditer(rb"\0(MPIX?ABI_\w+)(?=\0)", data)}
    if not found:
        raise ValueError(f"{library} has no table of MPItrampoline")
    return sorted(found)


def _function(name: str, parameters: str) -> str:
    declared, arguments, before, after = [], [], [], []
    for number, kind in enumerate(parameters):
        each = f"a{number}"
        if kind in "cr":
            declared.append(f"Handle* {each}")
            before.append(f"{HANDLES[kind]} own{number} = ({HANDLES[kind]})*{each};")
            arguments.append(f"&own{number}")
            after.append(f"*{each} = (Handle)(intptr_t)own{number};")
        elif kind in HANDLES:
            declared.append(f"Handle {each}")
            arguments.append(f"({HANDLES[kind]}){each}")
        else:
            declared.append(f"{'int' if kind == 'n' else 'void*'} {each}")
            arguments.append("MPI_STATUS_IGNORE" if kind == "s" else each)
    call = f"const int code = MPI_{name}({', '.join(arguments)});"
    body = " ".join([*before, call, *after, "return code;"])
    return f"int MPIABI_{name}({', '.join(declared) or 'void'}) {{ {body} }}"


def source_of(names: list[str]) -> str:
    """The wrapper in C. A call that it lacks ends the program and says its name."""
    lines = [BEGIN]
    for full in names:
        name = full.removeprefix("MPIABI_")
        if name in WRITTEN_OUT:
            continue
        if name in VARIABLES:
            lines.append(f"Handle {full};")
        elif name.isupper():
            lines.append(f"const Handle {full} = (Handle)(intptr_t)MPI_{name};")
        elif name in FUNCTIONS:
            lines.append(_function(name, FUNCTIONS[name]))
        elif full.startswith("MPIX"):  # questions about devices
            lines.append(f"int {full}(void) {{ return 0; }}")
        else:
            lines.append(f'int {full}(void) {{ return missing("{full}"); }}')
    return "\n".join(lines) + "\n"


def build(host: Host, library: Path, directory: Path) -> Path:
    """Builds the wrapper for `host` in `directory`, for the table in `library`. Raises CalledProcessError."""
    source, wrapper = directory / "wrapper.c", directory / f"libwrapper-{host.name}.so"
    source.write_text(source_of(names_in(library)))
    words = [tool_of(host, "mpicc"), "-shared", "-fPIC", "-w", "-O1", source, "-o", wrapper]
    subprocess.run(words, env=launcher_environment(host, nearfield=False), check=True, timeout=120)
    return wrapper
