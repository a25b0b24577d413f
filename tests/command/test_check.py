"""`nearfield check`: what it says beforehand is what happens."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from nearfield import check as checking
from nearfield import elf
from tests.command.calling import nearfield
from tests.mpi.jobs import HOSTS, LIBRARY, PROGRAMS, compile_c, python_of

EMPTY = "int main(void) { return 0; }\n"


def build(directory: Path, text: str, *options: str, compiler: str = "gcc") -> str:
    """Compiles a program; its path."""
    source, program = directory / "program.c", directory / "program"
    source.write_text(text)
    subprocess.run([compiler, str(source), *options, "-o", str(program)], check=True)
    return str(program)


def script(directory: Path, first_line: str) -> str:
    """An executable file with that first line; its path."""
    file = directory / "script"
    file.write_text(f"{first_line}\n")
    file.chmod(0o755)
    return str(file)


def refused(*arguments: str, **env: str) -> str:
    """What is said of programs that are not served."""
    done = nearfield("check", *arguments, **env)
    assert done.returncode == 1 and "not served" in done.stdout and not done.stderr, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("host, variant", [("mpich", "mpich"), ("openmpi", "ompi")])
def test_the_host_and_the_build_that_serves_it_are_named(host: str, variant: str) -> None:
    if not HOSTS[host].mpiexec.exists():
        pytest.skip(f"{host} is not installed")
    done = nearfield("check", "--host", host, compile_c(host, "several.c"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"({HOSTS[host].library}), by libnearfield-{variant}.so" in done.stdout
    assert {"mpich": "MPICH", "openmpi": "Open MPI"}[host] in done.stdout


def test_without_its_library_a_program_is_refused() -> None:
    program = compile_c("mpich", "several.c")
    assert "libmpi.so.12" in refused(program, LD_LIBRARY_PATH="")
    assert "NEARFIELD=off" in refused("--host", "mpich", program, NEARFIELD="off")


@pytest.mark.parametrize("option", ["-static", "-static-pie"])
def test_static_programs_are_refused(tmp_path: Path, option: str) -> None:
    assert "linked statically" in refused(build(tmp_path, EMPTY, option))


def test_programs_of_other_processors_are_refused(tmp_path: Path) -> None:
    compiler = next(filter(shutil.which, ("aarch64-linux-gnu-gcc", "riscv64-linux-gnu-gcc")), None)
    if not compiler:
        pytest.skip("no compiler for another processor is installed")
    assert "it is built for" in refused(build(tmp_path, EMPTY, compiler=compiler))


def test_an_mpi_that_is_linked_statically_is_refused(tmp_path: Path) -> None:
    inside = "int PMPI_Init(int* c, char*** v) { return c != 0 && v != 0; }\nint main(void) { return PMPI_Init(0, 0); }\n"
    assert "linked into it statically" in refused(build(tmp_path, inside))


def test_an_mpi_that_is_not_known_is_refused_for_the_reason_of_the_run(tmp_path: Path) -> None:
    library, program = tmp_path / "libmpi.so.40", tmp_path / "program"
    source, options = str(PROGRAMS / "serial_mpi.c"), ["-DPMPI", '-DVERSION="Some MPI 1.0"']
    shared = ["-shared", "-fPIC", "-DLIBRARY", "-Wl,-soname,libmpi.so.40"]
    subprocess.run(["gcc", *shared, *options, source, "-o", str(library)], check=True)
    subprocess.run(["gcc", source, str(library), f"-Wl,-rpath,{tmp_path}", "-o", str(program)], check=True)
    said = refused(str(program))
    assert str(library) in said and "Some MPI 1.0" in said


def test_a_c_library_that_is_too_old_is_refused_in_the_loaders_words(tmp_path: Path) -> None:
    # A stand-in for ours that needs a version of a library which that does not have (any more).
    ours, older, versions = tmp_path / "ours", tmp_path / "libolder.so.1", tmp_path / "versions"
    ours.mkdir()
    (tmp_path / "older.c").write_text("int older(void) { return 0; }\n")
    (tmp_path / "ours.c").write_text("int older(void);\nint ours(void) { return older(); }\n")
    for version in ("OLDER_2", "OLDER_1"):
        versions.write_text(f"{version} {{ global: older; }};\n")
        made = ["-shared", "-fPIC", f"-Wl,--version-script={versions}", "-Wl,-soname,libolder.so.1"]
        subprocess.run(["gcc", *made, str(tmp_path / "older.c"), "-o", str(older)], check=True)
        if version == "OLDER_2":
            linked = ["-shared", "-fPIC", str(tmp_path / "ours.c"), str(older), f"-Wl,-rpath,{tmp_path}"]
            subprocess.run(["gcc", *linked, "-o", str(ours / "libnearfield.so")], check=True)
    said = refused(build(tmp_path, EMPTY), NEARFIELD_LIBDIR=str(ours), NEARFIELD_HEAP="off")
    assert "OLDER_2" in said and "not found" in said


def test_a_directory_with_a_blank_is_preloaded_by_a_link(tmp_path: Path) -> None:
    directory, cache = tmp_path / "a directory", tmp_path / "cache"
    shutil.copytree(LIBRARY.parent, directory)
    for _ in range(2):
        done = nearfield(
            "run", "--log", "off", "env", NEARFIELD_LIBDIR=str(directory), XDG_CACHE_HOME=str(cache)
        )
        (link,) = (cache / "nearfield").iterdir()
        assert link.readlink() == directory and f"LD_PRELOAD={link}/libnearfield" in done.stdout, done.stderr
        assert not done.stderr  # the loader has found them


def test_a_directory_that_the_loader_cannot_be_told_is_refused(tmp_path: Path) -> None:
    directory = tmp_path / "a directory"
    shutil.copytree(LIBRARY.parent, directory)
    for arguments in (("run", "true"), ("check", build(tmp_path, EMPTY))):
        done = nearfield(*arguments, NEARFIELD_LIBDIR=str(directory), XDG_CACHE_HOME=str(directory))
        assert done.returncode == 2 and "does not accept LD_PRELOAD with a blank" in done.stderr, done.stderr


def test_programs_that_open_their_mpi_may_be_served(tmp_path: Path) -> None:
    opens = "#include <dlfcn.h>\nint main(void) { return !dlopen(0, RTLD_LAZY); }\n"
    for program in (build(tmp_path, opens, "-ldl"), os.path.realpath(python_of("mpich"))):
        done = nearfield("check", program)
        assert done.returncode == 0 and "perhaps" in done.stdout and "Python" in done.stdout, done.stdout
    assert "no MPI" in refused(build(tmp_path, EMPTY))


def test_scripts_are_judged_by_their_interpreters(tmp_path: Path) -> None:
    program = compile_c("mpich", "several.c")
    for first in (f"#!{program}", f"#!/usr/bin/env {program}", f"#! /usr/bin/env -S {program} plain"):
        done = nearfield("check", "--host", "mpich", script(tmp_path, first))
        assert done.returncode == 0 and "libnearfield-mpich.so" in done.stdout, done.stdout
    assert "/nonexistent/python" in refused(script(tmp_path, "#!/nonexistent/python"))
    assert "names no interpreter" in refused(script(tmp_path, "#!"))
    assert "names no interpreter" in refused(script(tmp_path, "#!/usr/bin/env"))
    assert "names no interpreter" in refused(script(tmp_path, "#!/usr/bin/env -u NAME"))
    assert "/nonexistent/it's" in refused(script(tmp_path, "#!/nonexistent/it's"))
    for options in ("-u NAME", "-S -u NAME A=1", "--chdir / -i"):
        done = nearfield("check", "--host", "mpich", script(tmp_path, f"#!/usr/bin/env {options} {program}"))
        assert done.returncode == 0 and "libnearfield-mpich.so" in done.stdout, done.stdout
    assert "its interpreter is a script" in refused(script(tmp_path, f"#!{tmp_path}/script"))
    static = build(tmp_path, EMPTY, "-static")
    assert "linked statically" in refused(script(tmp_path, f"#!{static}"))


@pytest.mark.parametrize("text", [b"", b"text", b"\x7fELF", b"\x7fELF\x02\x01\x01" + bytes(100)])
def test_what_is_no_program_is_refused(tmp_path: Path, text: bytes) -> None:
    file = tmp_path / "file"
    file.write_bytes(text)
    assert "not executable" in refused(str(file))
    file.chmod(0o755)
    assert "neither a program nor a script" in refused(str(file))
    assert "no such file" in refused(str(tmp_path / "none"))
    assert "not a file" in refused(str(tmp_path))
    assert "PATH" in refused("no-such-program-anywhere")


def test_broken_headers_are_refused(tmp_path: Path) -> None:
    good = Path(build(tmp_path, EMPTY)).read_bytes()
    file = tmp_path / "broken"
    for at in range(0, 64 + 13 * 56, 7):
        file.write_bytes(good[:at] + b"\xff" * 8 + good[at + 8 :])
        try:
            elf.read_object(file)
        except elf.NoProgram as error:
            assert str(error)


def test_privileged_programs_are_refused_for_who_does_not_have_them_already(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = Path(build(tmp_path, EMPTY))
    if os.statvfs(program).f_flag & os.ST_NOSUID:
        pytest.skip("this file system knows no setuid")
    stranger = (os.getuid() + 1, os.getgid() + 1)
    assert elf.privileged(program) is None
    for mode, kind in ((0o4755, "setuid"), (0o2755, "setgid")):
        program.chmod(mode)
        assert elf.privileged(program) is None  # it is ours
        with monkeypatch.context() as change:
            change.setattr(os, "getuid", lambda: stranger[0])
            change.setattr(os, "getgid", lambda: stranger[1])
            assert elf.privileged(program) == kind
            assert "LD_PRELOAD" in str(checking.check(str(program), dict(os.environ)))
    program.chmod(0o755)
    with monkeypatch.context() as change:
        change.setattr(os, "getuid", lambda: 1)
        change.setattr(os, "getxattr", lambda path, name: b"capability")
        assert elf.privileged(program) == "of file capabilities"


def test_one_of_several_that_is_refused_counts() -> None:
    served = compile_c("mpich", "several.c")
    done = nearfield("check", "--host", "mpich", served, "/nonexistent")
    assert done.returncode == 1 and done.stdout.count("\n") == 2
    assert nearfield("check", "--host", "nobody", served).returncode == 2
    assert nearfield("check", served, NEARFIELD_LIBDIR="/nowhere").returncode == 2


@pytest.mark.parametrize("host, variant", [("mpich", "mpich"), ("openmpi", "ompi")])
def test_a_script_is_judged_by_what_it_imports(tmp_path: Path, host: str, variant: str) -> None:
    file = tmp_path / "app.py"
    (tmp_path / "helping.py").write_text(
        "def work():\n    from mpi4py import MPI\n    return MPI.Is_initialized()\n"
    )
    # Modules beside it are imported as well, its own lines are not run.
    file.write_text(
        "import helping, json\nfrom mpi4py import MPI\nfrom os import path\nraise SystemExit(7)\n"
    )
    done = nearfield("check", python_of(host), str(file), LD_LIBRARY_PATH=str(HOSTS[host].library.parent))
    assert done.returncode == 0 and not done.stderr, done.stdout + done.stderr
    assert f"{file}: served, " in done.stdout and f"libnearfield-{variant}.so" in done.stdout


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("import json\n", "nothing that it imports loads an MPI"),
        ("import nosuch\n", "it cannot import nosuch: ModuleNotFoundError"),
        ("from nosuch import it\n", "it cannot import nosuch: ModuleNotFoundError"),
        ("import (\n", "it is not valid Python"),
        (None, "it cannot be read: No such file"),
    ],
)
def test_a_script_that_brings_no_mpi_is_refused(tmp_path: Path, text: str | None, why: str) -> None:
    file = tmp_path / "app.py"
    if text is not None:
        file.write_text(text)
    assert why in refused(sys.executable, str(file))
