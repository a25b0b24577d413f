"""Objects of Python between ranks by mpi4py: one pickle for all receivers, and memory beside it.

    from nearfield.mpi4py import Intracomm

    comm = Intracomm(MPI.COMM_WORLD)
    table = comm.bcast(table)

The classes stand for those of mpi4py.util.pkl5, which they derive from: what is not here is mpi4py's own. docs/user/objects.md says what is
carried how. packing.py is what travels of an object, tensors.py how PyTorch's are pickled, messages.py point to point, collectives.py the rest.
"""

from nearfield.mpi4py.collectives import Intercomm, Intracomm
from nearfield.mpi4py.messages import Comm, Message, Request

__all__ = ["Comm", "Intercomm", "Intracomm", "Message", "Request"]
