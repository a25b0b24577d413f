-- For Lmod. Not run. It sets PATH and MANPATH alone: LD_PRELOAD in a module would be in every process of a session; `nearfield run`
-- sets it for a job.
help([[
Nearfield makes MPI faster inside a node, under unmodified programs and MPI libraries.

    nearfield run mpiexec -n 4 ./program
    nearfield run srun ./program
]])
whatis("Name: Nearfield")
whatis("Version: 0.2.0")
whatis("Description: makes MPI faster inside a node")

-- PREFIX/modulefiles/nearfield/0.2.0.lua, where PREFIX is that of `cmake --install`
local prefix = pathJoin(myFileName():match("^(.*)/modulefiles/"), "")
prepend_path("PATH", pathJoin(prefix, "bin"))
prepend_path("MANPATH", pathJoin(prefix, "share/man"))
