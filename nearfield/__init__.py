"""Nearfield: makes MPI fast inside a node.

`import nearfield` in front of `from mpi4py import MPI` has it serve this process where nobody could preload it
(docs/user/start.md); the command's own processes need that not.
"""

import sys

__version__ = "0.2.0"

if not hasattr(sys.modules.get("__main__"), "nearfields_command"):
    from nearfield.loading import load

    load()
