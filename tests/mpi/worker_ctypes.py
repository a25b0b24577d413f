"""Messages between mpi4py and ctypes: each rank sends by one and receives by the other.

The argument is the MPI library's file.
"""

import ctypes
import sys

library = ctypes.CDLL(sys.argv[1])
send, receive = library.MPI_Send, library.MPI_Recv  # looked up before MPI is initialised

from mpi4py import MPI  # noqa: E402

comm = MPI.COMM_WORLD
peer = 1 - comm.rank
comm_handle, byte = (ctypes.c_void_p(MPI._handleof(thing)) for thing in (comm, MPI.BYTE))
status = ctypes.create_string_buffer(256)
for i in range(100):
    text = bytes([i]) * 8
    if comm.rank == 0:
        send(text, 8, byte, peer, 3, comm_handle)
        got = bytearray(8)
        comm.Recv(got, peer, 4)
    else:
        buffer = ctypes.create_string_buffer(8)
        receive(buffer, 8, byte, peer, 3, comm_handle, status)
        got = buffer.raw
        comm.Send(got, peer, 4)
    assert bytes(got) == text
comm.Barrier()
if comm.rank == 0:
    print("good")
