"""`import nearfield`: the library comes into a process that has begun without it, in front of the MPI that is loaded later.

Functions that are looked up from then on in the global scope are found in it first, as where it is preloaded. What has been
bound by then stays as it is: the C library's functions, so that there is no shared heap, and an MPI that is there already.
"""

from __future__ import annotations

import os
import sys
import warnings

from nearfield.libraries import NotBuilt, library_directory

SWITCHED_OFF = ("off", "0")


def load() -> bool:
    """Whether the library is there; where it cannot come, a warning says why."""
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
