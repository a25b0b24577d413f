"""Nearfield: makes MPI faster inside a node.

If Nearfield is not preloaded, `import nearfield` before `from mpi4py import MPI` loads it into this process
(docs/user/start.md). Processes of the command do not need this.
"""

import sys

__version__ = "0.2.0"

if not hasattr(sys.modules.get("__main__"), "nearfields_command"):
    from nearfield.loading import load

    load()
