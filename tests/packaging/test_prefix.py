"""`cmake --install`: a tree that can be moved, with what other builds, shells and packages ask for."""

import json
import shutil
from pathlib import Path

import pytest

from nearfield import __version__
from nearfield.statistics import PATTERN, read_statistics
from tests.mpi.jobs import HOSTS, ROOT, compile_c, hosts
from tests.packaging.conftest import BUILD, run

USER = """
cmake_minimum_required(VERSION 3.25)
project(user NONE)
enable_testing()
find_package(nearfield VERSION REQUIRED)
add_test(NAME preloaded COMMAND sh -c "grep -c libnearfield-heap.so /proc/self/maps")
add_test(NAME plain COMMAND sh -c "! grep libnearfield /proc/self/maps")
nearfield_tests(preloaded)
"""


def libraries_of(prefix: Path) -> Path:
    """Where the libraries are: Debian has a directory for each kind of machine."""
    (library,) = prefix.glob("lib*/**/libnearfield.so")
    return library.parent


def test_everything_lies_where_it_is_looked_for(prefix: Path) -> None:
    libraries = libraries_of(prefix)
    for name in (
        "libnearfield-heap.so",
        "libnearfield-mpich.so",
        "libnearfield-engine.so",
        "pkgconfig/nearfield.pc",
        "pkgconfig/nearfield-engine.pc",
    ):
        assert (libraries / name).exists(), name
    share = ("man/man1/nearfield.1", "bash-completion/completions/nearfield", "zsh/site-functions/_nearfield")
    for name in (*share, "fish/vendor_completions.d/nearfield.fish", "doc/nearfield/licenses/NOTICE.txt"):
        assert (prefix / "share" / name).exists(), name
    for path in prefix.rglob("*"):
        if path.is_file():
            assert str(ROOT).encode() not in path.read_bytes(), path


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_its_command_serves_a_job(prefix: Path, tmp_path: Path, host: str) -> None:
    launcher = [HOSTS[host].mpiexec, *HOSTS[host].options, "-n", 2]
    env = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    env |= {"LD_LIBRARY_PATH": str(HOSTS[host].library.parent)}
    words = ["run", f"--stats-file={tmp_path}/{PATTERN}", *launcher, compile_c(host, "several.c"), "plain"]
    done = run(prefix / "bin/nearfield", *words, cwd=tmp_path, **env)
    assert done.returncode == 0 and "good" in done.stdout and not done.stderr, done.stdout + done.stderr
    assert all(rank.operations["allreduce"].carried for rank in read_statistics(tmp_path))


def test_its_command_needs_nothing_of_the_checkout(prefix: Path, tmp_path: Path) -> None:
    assert str(libraries_of(prefix)) in run(prefix / "bin/nearfield", "env", cwd=tmp_path).stdout
    # Of a link to it, too, as modules and stow have them.
    (tmp_path / "nearfield").symlink_to(prefix / "bin/nearfield")
    shown = run(tmp_path / "nearfield", "exec", "sh", "-c", "echo $LD_PRELOAD", cwd=tmp_path).stdout
    assert str(libraries_of(prefix) / "libnearfield.so") in shown


@pytest.mark.skipif(not shutil.which("pkg-config"), reason="pkg-config is not installed")
def test_pkg_config_says_what_to_preload(prefix: Path, tmp_path: Path) -> None:
    env = {"PKG_CONFIG_PATH": str(libraries_of(prefix) / "pkgconfig")}
    told = run("pkg-config", "--variable=preload", "nearfield", cwd=tmp_path, **env).stdout.strip().split(":")
    assert [Path(path).resolve().name for path in told] == ["libnearfield.so", "libnearfield-heap.so"]
    assert all(Path(path).exists() for path in told)
    assert run("pkg-config", "--modversion", "nearfield", cwd=tmp_path, **env).stdout.strip() == __version__


def test_cmake_finds_it_and_runs_tests_under_it(prefix: Path, tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(USER.replace("VERSION REQUIRED", f"{__version__} REQUIRED"))
    done = run("cmake", "-B", "build", f"-DCMAKE_PREFIX_PATH={prefix}", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = run("ctest", "--test-dir", "build", "--output-on-failure", cwd=tmp_path)
    assert "100% tests passed" in done.stdout and "out of 2" in done.stdout, done.stdout


@pytest.mark.full
@pytest.mark.parametrize("kind", ["TGZ", "DEB", "RPM"])
def test_it_is_packed(tmp_path: Path, kind: str) -> None:
    if kind == "RPM" and not shutil.which("rpmbuild"):
        pytest.skip("rpmbuild is not installed")
    done = run("cpack", "-G", kind, "--config", BUILD / "CPackConfig.cmake", "-B", tmp_path, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    (packed,) = [path for path in tmp_path.iterdir() if path.suffix in (".gz", ".deb", ".rpm")]
    lists = {"TGZ": ["tar", "-tf"], "DEB": ["dpkg-deb", "-c"], "RPM": ["rpm", "-qlp"]}
    listed = run(*lists[kind], packed, cwd=tmp_path).stdout
    for name in ("bin/nearfield", "libnearfield.so", "libnearfield-mpich.so", "man1/nearfield.1"):
        assert name in listed, listed
    if kind == "DEB":
        (tmp_path / "root").mkdir()
        run("dpkg-deb", "-x", packed, "root", cwd=tmp_path)
        told = run(tmp_path / "root/usr/bin/nearfield", "env", cwd=tmp_path).stdout
        assert str(tmp_path / "root/usr/lib") in told
        about = run("dpkg-deb", "-f", packed, "Version", cwd=tmp_path).stdout
        assert about.strip().startswith(__version__)


def test_libraries_of_different_versions_leave_each_other_alone(prefix: Path, tmp_path: Path) -> None:
    program, env = compile_c("mpich", "several.c"), {"LD_LIBRARY_PATH": str(HOSTS["mpich"].library.parent)}
    other = __version__[:-1] + chr(ord(__version__[-1]) ^ 1)
    for changed, says in (
        ("libnearfield-mpich.so", "the host MPI serves every call"),
        ("libnearfield-heap.so", "peers do not map the memory of this heap"),
    ):
        place = tmp_path / changed / "lib"
        place.mkdir(parents=True)
        for library in libraries_of(prefix).glob("libnearfield*.so"):
            data = library.read_bytes()
            if library.name == changed:
                assert __version__.encode() + b"\0" in data
                data = data.replace(__version__.encode() + b"\0", other.encode() + b"\0")
            (place / library.name).write_bytes(data)
        figures = place / PATTERN
        words = [HOSTS["mpich"].mpiexec, "-n", 2, program, "plain"]
        preloads = f"{place}/libnearfield.so:{place}/libnearfield-heap.so"
        done = run(*words, cwd=tmp_path, **env, LD_PRELOAD=preloads, NEARFIELD_STATS_FILE=str(figures))
        assert done.returncode == 0 and "good" in done.stdout, done.stdout + done.stderr
        assert says in done.stderr and __version__ in done.stderr and other in done.stderr, done.stderr
        served = [json.loads(path.read_text()) for path in place.glob("*.json")]
        assert len(served) == (0 if changed == "libnearfield-mpich.so" else 2)


def test_a_command_of_another_version_says_so(prefix: Path, tmp_path: Path) -> None:
    other = f'__version__ = "{__version__}9"'
    (package,) = prefix.glob("lib*/**/python/nearfield/__init__.py")
    shutil.copytree(package.parent, tmp_path / "nearfield")
    changed = tmp_path / "nearfield/__init__.py"
    changed.write_text(package.read_text().replace(f'__version__ = "{__version__}"', other))
    code = "nearfields_command = ''\nfrom nearfield.cli import main\nmain()"
    done = run("python3", "-c", code, "env", cwd=tmp_path, NEARFIELD_LIBDIR=str(libraries_of(prefix)))
    assert f"of version {__version__}, this command is of {__version__}9" in done.stderr, done.stderr
    assert "LD_PRELOAD" in done.stdout
