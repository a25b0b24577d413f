"""bench/rivals/build.sh: what it builds of sources that are there, records of it, and says where something is missing."""

import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.scripts.loading import ROOT

# Says what it was asked for, and what it has.
CONFIGURE = """#!/bin/sh
echo "$@"
echo "checking for process_vm_readv... yes"
echo "checking if MCA component smsc:cma can compile... yes"
for word; do case $word in --prefix=*) prefix=${word#*=} ;; esac; done
printf 'all:\\n\\ttrue\\ninstall:\\n\\tmkdir -p %s/bin && touch %s/bin/mpiexec\\n' "$prefix" "$prefix" > Makefile
"""


@pytest.fixture
def tarball(tmp_path: Path) -> Path:
    """A source that is quickly built."""
    folder, path = tmp_path / "source-1.0", tmp_path / "source-1.0.tar.gz"
    folder.mkdir()
    (folder / "configure").write_text(CONFIGURE)
    (folder / "configure").chmod(0o755)
    with tarfile.open(path, "w:gz") as packed:
        packed.add(folder, folder.name)
    return path


def build(*words: object) -> subprocess.CompletedProcess[str]:
    script = str(ROOT / "bench/rivals/build.sh")
    return subprocess.run([script, *map(str, words)], capture_output=True, text=True, timeout=60)


def test_sources_are_built_and_their_flags_recorded(tarball: Path, tmp_path: Path) -> None:
    there = tmp_path / "built"
    done = build("--prefix", there, "--jobs", 1, f"ucx={tarball}", f"mpich={tarball}", f"openmpi={tarball}")
    assert done.returncode == 0, done.stderr
    assert (there / "mpich/bin/mpiexec").exists() and (there / "openmpi/bin/mpiexec").exists()
    flags = (there / "openmpi.flags").read_text()
    assert "source-1.0.tar.gz" in flags and f"--with-ucx={there}/ucx" in flags and "-O3" in flags
    assert "--with-device=ch4:ofi" in (there / "mpich.flags").read_text()
    assert "with CMA" in done.stdout and "WITHOUT XPMEM" in done.stdout
    assert "with smsc:cma" in done.stdout and "WITHOUT coll:xhc" in done.stdout


def test_an_installed_ucx_is_taken_as_it_is(tarball: Path, tmp_path: Path) -> None:
    installed, there = tmp_path / "usr", tmp_path / "built"
    for file in ("include/ucp/api/ucp.h", "lib/machine/libucp.so"):
        (installed / file).parent.mkdir(parents=True)
        (installed / file).touch()
    done = build("--prefix", there, "--jobs", 1, f"ucx={installed}", f"openmpi={tarball}")
    assert done.returncode == 0, done.stderr
    flags = (there / "openmpi.flags").read_text()
    assert f"--with-ucx={installed} --with-ucx-libdir={installed}/lib/machine" in flags
    assert not (there / "ucx").exists()


def test_configure_alone_installs_nothing(tarball: Path, tmp_path: Path) -> None:
    done = build("--prefix", tmp_path / "built", "--configure-only", f"mpich={tarball}")
    assert done.returncode == 0 and "mpich: configured" in done.stdout
    assert not (tmp_path / "built/mpich").exists()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("mpich=x.tar.gz",), "--prefix"),
        (("--prefix", "{there}"), "name what to build"),
        (("--prefix", "{there}", "mpich=nowhere.tar.gz"), "no nowhere.tar.gz"),
        (("--prefix", "{there}", "mvapich=x"), "neither an option"),
        (("--prefix", "{there}", "mpich={there}"), "take a release"),
        (("--prefix", "{there}", "xpmem={there}"), "xpmem.h"),
    ],
)
def test_what_is_missing_is_said(words: tuple[str, ...], why: str, tmp_path: Path) -> None:
    done = build(*(word.format(there=tmp_path) for word in words))
    assert done.returncode == 2 and why in done.stderr


def test_what_was_built_is_a_host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from nearfield import hosts

    monkeypatch.setenv(hosts.RIVALS, str(tmp_path))
    built = {host.name: host for host in hosts._hosts() if host.name.startswith("built-")}
    assert (
        built["built-mpich"].mpiexec == tmp_path / "mpich/bin/mpiexec"
        and built["built-openmpi"].abi == "ompi"
    )
