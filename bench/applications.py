"""Real applications, plain and under Nearfield in turns: those of Debian's packages that are installed, with small inputs made here.

    python bench/applications.py [--ranks 2] [--runs 5] [--out FILE.json] [NAME...]

Packages: gromacs lammps hpcc quantum-espresso quantum-espresso-data nwchem-openmpi (Open MPI 4.1 of Debian), and python3-petsc4py
python3-h5py-mpi. Each runs a few seconds. For an application that is not installed one line is printed. All runs of an application have
to print the same except times (`nearfield compare`). Figures are wall times divided by that of the plain run of the same round.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from nearfield.compare import compare  # noqa: E402
from nearfield.compared import MODES, Compared, quartiles  # noqa: E402
from nearfield.hosts import HOSTS, host_environment, launch_command  # noqa: E402
from nearfield.verdict import as_json, verdict  # noqa: E402


@dataclass(frozen=True)
class Application:
    """An application. `prepare` writes inputs for a number of ranks into a directory, in which the command runs."""

    name: str
    needs: tuple[str, ...]  # programs, or files by their paths
    command: tuple[str, ...]
    prepare: Callable[[Path, int], None]


def lammps(where: Path, _ranks: int) -> None:
    """A Lennard-Jones liquid of 32,000 atoms."""
    (where / "in.melt").write_text(
        "units lj\natom_style atomic\nlattice fcc 0.8442\nregion box block 0 20 0 20 0 20\ncreate_box 1 box\n"
        "create_atoms 1 box\nmass 1 1.0\nvelocity all create 1.44 87287 loop geom\npair_style lj/cut 2.5\n"
        "pair_coeff 1 1 1.0 1.0 2.5\nneighbor 0.3 bin\nneigh_modify delay 0 every 20 check no\nfix 1 all nve\n"
        "thermo 50\nrun 400\n"
    )


def gromacs(where: Path, _ranks: int) -> None:
    """A box of water, 9,000 atoms, with PME."""
    (where / "topol.top").write_text(
        '#include "oplsaa.ff/forcefield.itp"\n#include "oplsaa.ff/spc.itp"\n[ system ]\nwater\n[ molecules ]\n'
    )
    (where / "run.mdp").write_text(
        "integrator = md\nnsteps = 500\ndt = 0.001\ncoulombtype = PME\nrcoulomb = 0.9\nrvdw = 0.9\ncutoff-scheme = Verlet\n"
        "tcoupl = v-rescale\ntc-grps = System\ntau-t = 0.5\nref-t = 300\ngen-vel = yes\ngen-seed = 1\nld-seed = 1\nnstlog = 100\n"
    )
    for line in (
        "gmx solvate -cs spc216.gro -box 4.5 4.5 4.5 -o water.gro -p topol.top",
        "gmx grompp -f run.mdp -c water.gro -p topol.top -o topol.tpr -maxwarn 3",
    ):
        subprocess.run(line.split(), cwd=where, check=True, capture_output=True)


def hpcc(where: Path, ranks: int) -> None:
    """The HPC Challenge with a matrix of 700."""
    lines = Path("/usr/share/doc/hpcc/examples/_hpccinf.txt").read_text().splitlines()

    def put(label: str, value: str) -> None:
        at = next(number for number, line in enumerate(lines) if label in line)
        lines[at] = f"{value}  {label}"

    for label, value in (("Ns", "700"), ("NBs", "80"), ("Ps", "1"), ("Qs", str(ranks))):
        put(label, value)
    (where / "hpccinf.txt").write_text("\n".join(lines) + "\n")


PSEUDOPOTENTIAL = Path("/usr/share/doc/quantum-espresso/examples/EPW/sic/pp/Si.pz-vbc.UPF.gz")


def espresso(where: Path, _ranks: int) -> None:
    """Silicon, eight atoms, plane waves."""
    (where / "Si.UPF").write_bytes(gzip.decompress(PSEUDOPOTENTIAL.read_bytes()))
    positions = [(0, 0, 0), (0, 2, 2), (2, 0, 2), (2, 2, 0), (1, 1, 1), (1, 3, 3), (3, 1, 3), (3, 3, 1)]
    (where / "si.in").write_text(
        "&control\n calculation='scf' prefix='si' pseudo_dir='.' outdir='./tmp' disk_io='none'\n/\n"
        "&system\n ibrav=1 celldm(1)=10.2 nat=8 ntyp=1 ecutwfc=30\n/\n&electrons\n conv_thr=1d-9\n/\n"
        "ATOMIC_SPECIES\n Si 28.086 Si.UPF\nATOMIC_POSITIONS alat\n"
        + "".join(f" Si {x / 4} {y / 4} {z / 4}\n" for x, y, z in positions)
        + "K_POINTS automatic\n 2 2 2 1 1 1\n"
    )


def nwchem(where: Path, _ranks: int) -> None:
    """Water by coupled self-consistent fields: global arrays over one-sided calls and messages."""
    (where / "water.nw").write_text(
        "start water\ngeometry units angstrom\n O 0 0 0.117\n H 0 0.757 -0.469\n H 0 -0.757 -0.469\nend\n"
        "basis spherical\n * library aug-cc-pvdz\nend\nscf\n thresh 1e-8\nend\ntask scf\ntask mp2\n"
    )


def petsc(where: Path, _ranks: int) -> None:
    """Conjugate gradients on a grid of 400 by 400."""
    (where / "cg.py").write_text(
        "import sys\nsys.path.insert(0, '/usr/lib/python3/dist-packages')\nimport petsc4py\npetsc4py.init(sys.argv)\n"
        "from petsc4py import PETSc\nn = 400\ngrid = PETSc.DMDA().create([n, n], stencil_width=1)\n"
        "A = grid.createMatrix()\n(x0, x1), (y0, y1) = grid.getRanges()\n"
        "for y in range(y0, y1):\n    for x in range(x0, x1):\n        row = PETSc.Mat.Stencil(); row.index = (x, y)\n"
        "        for dx, dy, v in ((0, 0, 4), (1, 0, -1), (-1, 0, -1), (0, 1, -1), (0, -1, -1)):\n"
        "            if 0 <= x + dx < n and 0 <= y + dy < n:\n"
        "                column = PETSc.Mat.Stencil(); column.index = (x + dx, y + dy); A.setValueStencil(row, column, v)\n"
        "A.assemble()\nx, b = A.createVecs()\nb.set(1)\nsolver = PETSc.KSP().create()\nsolver.setOperators(A)\n"
        "solver.setType('cg'); solver.getPC().setType('jacobi'); solver.setTolerances(rtol=1e-8)\nsolver.solve(b, x)\n"
        "if PETSc.COMM_WORLD.rank == 0: print('iterations', solver.getIterationNumber())\n"
    )


def h5py(where: Path, _ranks: int) -> None:
    """A file that all ranks write and read, 40 data sets of 1 MiB."""
    (where / "write.py").write_text(
        "import h5py, numpy\nfrom mpi4py import MPI\ncomm = MPI.COMM_WORLD\nn = 131072\ntotal = 0.0\n"
        "with h5py.File('x.h5', 'w', driver='mpio', comm=comm) as file:\n    for i in range(40):\n"
        "        data = file.create_dataset(f'd{i}', (n,), 'f8')\n        part = n // comm.size\n"
        "        low = comm.rank * part\n        data[low:low + part] = numpy.arange(low, low + part) * i\n"
        "with h5py.File('x.h5', 'r', driver='mpio', comm=comm) as file:\n"
        "    for i in range(40): total += float(file[f'd{i}'][comm.rank::comm.size].sum())\n"
        "total = comm.allreduce(total)\nif comm.rank == 0: print('sum', total)\n"
    )


PACKAGES = Path("/usr/lib/python3/dist-packages")
APPLICATIONS = (
    Application("lammps", ("lmp",), ("lmp", "-in", "in.melt", "-log", "none"), lammps),
    Application(
        "gromacs",
        ("gmx", "gmx_mpi"),
        ("gmx_mpi", "mdrun", "-s", "topol.tpr", "-ntomp", "1", "-reprod", "-nb", "cpu"),
        gromacs,
    ),
    Application("hpcc", ("hpcc", "/usr/share/doc/hpcc/examples/_hpccinf.txt"), ("hpcc",), hpcc),
    Application("espresso", ("pw.x", str(PSEUDOPOTENTIAL)), ("pw.x", "-in", "si.in"), espresso),
    Application("nwchem", ("nwchem.openmpi",), ("nwchem.openmpi", "water.nw"), nwchem),
    Application("petsc", (str(PACKAGES / "petsc4py"),), ("/usr/bin/python3", "cg.py"), petsc),
    Application("h5py", (str(PACKAGES / "h5py/_debian_h5py_mpi"),), ("/usr/bin/python3", "write.py"), h5py),
)


def absent(application: Application) -> list[str]:
    """The files and programs that the application needs and that are missing."""
    return [
        one
        for one in application.needs
        if not (Path(one).exists() if one.startswith("/") else shutil.which(one))
    ]


def measure(application: Application, ranks: int, runs: int) -> Compared:
    """Runs it, Debian's Open MPI starting it. Raises ValueError where it fails by itself."""
    host = HOSTS["debian-openmpi"]
    env = dict(os.environ) | host_environment(host) | {"OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory(prefix="nearfield-application-") as text:
        application.prepare(Path(text), ranks)
        before = Path.cwd()
        os.chdir(text)
        try:
            return compare(
                launch_command(host, ranks, list(application.command)),
                env,
                runs,
                announce=lambda what: print(f"{application.name}: {what}", file=sys.stderr),
            )
        finally:
            os.chdir(before)


def main() -> int:
    """The table; the exit status is 1 where an application failed or printed otherwise."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    found, wrong = {}, False
    for application in APPLICATIONS:
        if asked.names and application.name not in asked.names:
            continue
        if lacking := absent(application):
            print(f"{application.name}: left out, {', '.join(lacking)} not installed")
            continue
        try:
            one = measure(application, asked.ranks, asked.runs)
        except (ValueError, subprocess.CalledProcessError) as error:
            print(f"{application.name}: {error}")
            wrong = True
            continue
        wrong |= not one.same
        found[application.name] = as_json(one) | {"ranks": asked.ranks}
        cells = [
            f"{mode} {middle:.3f} ({low:.3f}-{high:.3f})"
            for mode in MODES[1:]
            if (ratios := one.ratios(mode))
            for low, middle, high in [quartiles(ratios)]
        ]
        plain = quartiles(one.figures(MODES[0], "wall"))[1]
        print(f"{application.name:10} plain {plain:.2f} s; {'; '.join(cells)}; same: {one.same}")
        print("\n".join(f"           {line}" for line in verdict(one)), flush=True)
        if asked.out:
            asked.out.write_text(json.dumps(found, indent=1) + "\n")
    return int(wrong)


if __name__ == "__main__":
    raise SystemExit(main())
