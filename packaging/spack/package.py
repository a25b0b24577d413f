# ruff: noqa: F403, F405
# Not run: Spack was not there. Python compiles it.
from spack.package import *


class Nearfield(CMakePackage):
    """Makes MPI faster inside a node: loaded under an unmodified MPI program and an unmodified MPI library, it runs their messages and
    collectives between ranks of a node through shared memory."""

    homepage = "https://nearfield.example.org"
    url = "https://nearfield.example.org/nearfield-0.2.0.tar.gz"

    license("BSD-3-Clause")

    version("0.2.0", sha256="0" * 64)

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("highway@1.0.3:", type="build")
    depends_on("tomlplusplus", type="build")
    depends_on("nlohmann-json", type="build")
    depends_on("hwloc@2.3:")
    # What runs under it may be of another one of the same ABI: both shims are built where both headers are there.
    depends_on("mpi")
    depends_on("python@3.9:", type="run")

    requires("%gcc@12:", msg="only GCC has compiled it")
    conflicts("platform=darwin")

    generator("ninja")

    def cmake_args(self):
        mpi = self.spec["mpi"]
        abi = "OMPI" if mpi.name == "openmpi" else "MPICH"
        return [
            self.define("CMAKE_CXX_FLAGS", "-O3"),
            self.define(f"NEARFIELD_{abi}_INCLUDE", mpi.prefix.include),
        ]

    # Not LD_PRELOAD: `nearfield run` sets it for a job, and no one else wants it.
