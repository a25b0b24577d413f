"""`import nearfield`: loads the library into a process that has begun without it, before the process loads MPI.

From then on a look-up in the global scope finds the library's functions first, as if it were preloaded. Functions that are bound
already stay bound: malloc, so there is no shared heap, and those of an MPI that is loaded already.
"""

from __future__ import annotations

import os
import sys
import warnings

from nearfield.libraries import NotBuilt, library_directory

SWITCHED_OFF = ("off", "0")


def load() -> bool:
    """Returns whether the library is loaded. Warns if it cannot be loaded; NEARFIELD=off gives no warning."""
    import ctypes

    if hasattr(ctypes.CDLL(None), "nearfield_version"):
        return True
    if os.environ.get("NEARFIELD") in SWITCHED_OFF:
        return False
    try:
        if "mpi4py.MPI" in sys.modules:
            raise ImportError("mpi4py.MPI has been imported before; import nearfield first")
        ctypes.CDLL(str(library_directory() / "libnearfield.so"), mode=ctypes.RTLD_GLOBAL)
    except (ImportError, NotBuilt, OSError) as error:
        warnings.warn(f"Nearfield does not serve this process: {error}", RuntimeWarning, stacklevel=3)
        return False
    return True
