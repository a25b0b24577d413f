"""The collectives that are measured where nobody names any; a test holds them against the library's table."""

OPERATIONS = (
    "barrier,bcast,reduce,allreduce,allgather,alltoall,gather,scatter,reduce_scatter_block,scan,exscan"
)
