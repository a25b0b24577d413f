"""What every collective call has to bring, computed without MPI, and the calls themselves. Runs in ranks, below mpi4py.

layouts: datatypes and where their bytes lie; operands: elements that reductions combine, and operators; calls: a call as all
of its ranks know it, drawn or given, and the bytes it leaves; running: a rank's part of it by a function of C;
communicators: those that calls are made on; worker: a job that stays and takes case after case (tests/mpi/resident.py).
"""
