"""Loading: harmless where there is no MPI, found by every way of calling MPI, switched by the environment."""

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from nearfield.statistics import PATTERN, VARIABLE, read_statistics
from tests.mpi.jobs import (
    EVERYTHING,
    HEAP,
    HOSTS,
    LIBRARY,
    NOTHING,
    PROGRAMS,
    ROOT,
    SCRATCH,
    STANDARD,
    Completed,
    Served,
    carried,
    command,
    compile_c,
    compile_for_the_standard_abi,
    compile_library,
    compiled,
    digest,
    environment,
    hosts,
    launch,
    python_of,
    run,
    sent,
)


@pytest.mark.parametrize("command", [["bash", "-c", "echo fine"], ["ls", "/"], ["python3", "-c", "print(1)"]])
def test_programs_without_mpi_are_untouched(command: list[str]) -> None:
    env = {**os.environ, "LD_PRELOAD": str(LIBRARY)}
    plain = subprocess.run(command, capture_output=True, text=True)
    loaded = subprocess.run(command, env=env, capture_output=True, text=True)
    assert (loaded.stdout, loaded.stderr, loaded.returncode) == (plain.stdout, plain.stderr, 0)


@pytest.mark.parametrize(
    "library", sorted(LIBRARY.parent.glob("libnearfield*.so")), ids=lambda path: path.name
)
def test_the_libraries_load_from_glibc_2_28_on(library: Path) -> None:
    symbols = subprocess.run(
        ["objdump", "-T", str(library)], capture_output=True, text=True, check=True
    ).stdout
    needed = re.findall(r"GLIBC_([\d.]+)\)?\s+(\S+)", symbols)
    assert needed
    newer = [name for version, name in needed if tuple(map(int, version.split("."))) > (2, 28)]
    assert not newer, "wrap them in cmake/OldGlibc.cmake"


@pytest.mark.parametrize("library", [LIBRARY, HEAP], ids=lambda path: path.name)
def test_what_is_preloaded_needs_the_c_library_alone(library: Path) -> None:
    # musl takes these names for its own; any other would end every process of such a container.
    dynamic = subprocess.run(
        ["objdump", "-p", str(library)], capture_output=True, text=True, check=True
    ).stdout
    assert set(re.findall(r"NEEDED\s+(\S+)", dynamic)) <= {"libc.so.6", "libdl.so.2"}


def test_the_libraries_take_little_of_the_threads_reserve() -> None:
    # Of one process: what is preloaded, and one shim. Plugins of the program need the reserve too.
    taken = {}
    for library in LIBRARY.parent.glob("libnearfield*.so"):
        headers = subprocess.run(
            ["readelf", "-lW", str(library)], capture_output=True, text=True, check=True
        ).stdout
        taken[library] = sum(
            int(size, 16) for size in re.findall(r"^ +TLS +(?:\S+ +){4}(\S+)", headers, re.M)
        )
    preloaded = taken.pop(LIBRARY) + taken.pop(HEAP)
    assert preloaded > 0 and preloaded + max(taken.values()) <= 64, taken


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_plugins_that_take_the_threads_reserve_load_before_and_after(host: str) -> None:
    plugins = [
        compile_library(PROGRAMS / "reserve.c", f"reserve{bytes}.so", f"-DBYTES={bytes}")
        for bytes in (900, 600)
    ]
    job = launch(host, 2, [compile_c(host, "reserve.c", "-ldl"), *plugins], served=EVERYTHING)
    assert "good" in job.stdout, job.text


@pytest.mark.skipif(not shutil.which("musl-gcc"), reason="musl is not installed")
def test_programs_with_musl_are_untouched() -> None:
    program = compiled("musl", (str(PROGRAMS / "without_mpi.c"),), "musl-gcc")
    env = {**os.environ, "LD_PRELOAD": f"{LIBRARY}:{HEAP}"}
    loaded = subprocess.run([program], env=env, capture_output=True, text=True)
    assert (loaded.stdout, loaded.stderr, loaded.returncode) == ("good\n", "", 0)


@pytest.mark.parametrize("host", hosts())
def test_every_host_is_served(host: str) -> None:
    job = launch(host, 2, [compile_c(host, "several.c"), "plain"], served=EVERYTHING)
    assert "good" in job.stdout, job.text
    assert carried(job, "allreduce") == 1 and carried(job, "reduce") == 1, job.stderr


@pytest.mark.parametrize("host", hosts("mpich", "impi"))
def test_the_standard_abi_is_served(host: str) -> None:
    job = launch(host, 2, [compile_for_the_standard_abi("several.c"), "plain"], served=EVERYTHING)
    assert "good" in job.stdout and carried(job, "allreduce") == 1, job.text


def renamed(library: Path, soname: str) -> Path:
    """A copy of a host's library by another SONAME, which is no longer than its own."""
    before, after = (b"\0%b\0" % name.encode() for name in (library.name, soname))
    copy = SCRATCH / digest(str(library))[:12] / soname / soname
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_bytes(library.read_bytes().replace(before, after.ljust(len(before), b"\0")))
    return copy


# Libraries below it are found by the path of libraries.
ALLOW = "-Wl,--allow-shlib-undefined"


def launch_with(host: str, source: str, libraries: list[Path], *arguments: str) -> Completed:
    """Runs a program with these libraries in front of the host's own."""
    if libraries[0].name.startswith("libmpi_abi"):
        program = compile_for_the_standard_abi(source, libraries[0], ALLOW)
    else:
        files = map(str, libraries)
        options = (
            "-O1",
            f"-I{HOSTS[host].include}",
            str(PROGRAMS / source),
            "-no-pie",
            *files,
            "-ldl",
            ALLOW,
        )
        program = compiled(f"{host}-other", options)
    own = HOSTS[host].library.parent
    path = ":".join(map(str, [*(one.parent for one in libraries), own, own / "mpich", own / "openmpi"]))
    # Behind Open MPI's launcher, which puts its own library in front.
    line = ["env", f"LD_LIBRARY_PATH={path}", program, *arguments]
    job = launch(host, 2, line, {"NEARFIELD_LOG": "info"}, served=EVERYTHING)
    assert "good" in job.stdout and f"({libraries[0]})" in job.stderr, job.text
    return job


@pytest.mark.parametrize("name", ["libmpi.so.0", "libmpi_abi.so.0"])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_development_trees_are_served(host: str, name: str) -> None:
    if host == "openmpi" and name != "libmpi.so.0":
        pytest.skip("there is none of the standard ABI")
    library = STANDARD if "abi" in name else HOSTS[host].library
    job = launch_with(host, "several.c", [renamed(library, name)], "plain")
    assert carried(job, "allreduce") == 1, job.text


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the stand-in is written for x86-64")
@pytest.mark.parametrize("how", ["linked", "before"])
def test_open_mpi_whose_library_is_thin_is_served(how: str) -> None:
    # As Open MPI 6 is: libmpi has the functions, and all else, such as MPI_COMM_WORLD, lies in a library below it.
    below = renamed(HOSTS["openmpi"].library, "libopenmpi")
    symbols = subprocess.run(
        ["nm", "-D", "--defined-only", str(below)], capture_output=True, text=True, check=True
    ).stdout
    functions = below.with_suffix(".functions")
    functions.write_text("".join(f"F({name})\n" for name in re.findall(r" [TW] (P?MPI_\w+)", symbols)))
    thin = compile_library(
        PROGRAMS / "thin_mpi.c",
        "libmpi.so.40",
        *(f'-D{key}="{file}"' for key, file in (("FUNCTIONS", functions), ("LIBRARY", below))),
        str(below),
        "-Wl,--no-as-needed,-soname,libmpi.so.40",
        ALLOW,
    )
    job = launch_with("openmpi", "pingpong.c", [Path(thin), below], thin, how, how)
    assert carried(job, "allreduce") == 100 and sent(job) == 100, job.text


def test_its_messages_are_integers_and_back() -> None:
    program = compile_for_the_standard_abi("message_numbers.c")
    job = launch("mpich", 2, [program], env={"NEARFIELD_MESSAGES": "off"}, served=NOTHING)
    assert "good" in job.stdout, job.text
    assert "good" in launch("mpich", 2, [program], served=EVERYTHING).stdout


def test_it_can_be_switched_off() -> None:
    job = launch("mpich", 2, [compile_c("mpich", "several.c")], env={"NEARFIELD": "off"}, served=NOTHING)
    assert "good" in job.stdout, job.text


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_switched_off_in_one_rank_the_host_serves_all(host: str) -> None:
    script = 'r=${PMI_RANK:-$OMPI_COMM_WORLD_RANK}; [ "$r" = 1 ] && export NEARFIELD=off; exec "$0" plain'
    job = launch(host, 3, ["bash", "-c", script, compile_c(host, "several.c")], served=NOTHING)
    assert "good" in job.stdout, job.text


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_communicators_that_span_nodes_go_to_the_host(host: str) -> None:
    script = 'export NEARFIELD_NODE=n${PMI_RANK:-$OMPI_COMM_WORLD_RANK}; exec "$0" plain'
    job = launch(host, 2, ["bash", "-c", script, compile_c(host, "several.c")], served=NOTHING)
    assert "good" in job.stdout, job.text


def test_a_misspelt_algorithm_is_an_error_that_lists_the_names() -> None:
    program = [compile_c("mpich", "several.c")]
    job = launch("mpich", 2, program, env={"NEARFIELD_ALGORITHM": "allreduce:partitoned"})
    assert job.returncode != 0 and not job.timed_out
    assert "partitioned" in job.stderr and "oneshot" in job.stderr


def test_an_unknown_setting_is_an_error() -> None:
    job = launch("mpich", 2, [compile_c("mpich", "several.c")], env={"NEARFIELD_WAIT": "forever"})
    assert job.returncode != 0 and "spin" in job.stderr


def opener() -> str:
    """The program that opens plugins."""
    return compiled("opener", (str(PROGRAMS / "two_mpis.c"), "-ldl"))


def profiled(host: str, how: str) -> Completed:
    """Runs pingpong.c with the profiling tool in the named place."""
    tool = compile_c(host, "profiler.c", "-shared", "-fPIC", *(["-DNEXT"] if "next" in how else []))
    program = compile_c(host, "pingpong.c")
    if how == "linked":
        program = compile_c(host, "pingpong.c", "-Wl,--no-as-needed", tool)
    if how == "in the program":
        program = compile_c(host, "pingpong.c", str(PROGRAMS / "profiler.c"))
    preload = {"before": f"{tool} {LIBRARY} {HEAP}", "behind": f"{LIBRARY} {HEAP} {tool}"}
    return launch(
        host,
        2,
        [program],
        {"LD_PRELOAD": preload.get(how.split(",")[0], f"{LIBRARY} {HEAP}")},
        served=EVERYTHING,
    )


@pytest.mark.parametrize(
    "how", ["linked", "in the program", "before", "behind", "before, next", "behind, next"]
)
@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_profiling_tools_see_every_call_and_have_nearfield_beneath_them(host: str, how: str) -> None:
    job = profiled(host, how)
    assert "good" in job.stdout and "profiled 1 100 100" in job.stderr, job.text
    assert carried(job, "allreduce") == 100 and sent(job) == 100, job.stderr


def test_profiling_tools_see_a_library_that_is_loaded_privately() -> None:
    tool = compile_library(PROGRAMS / "profiler.c", "profiler-unlinked.so", f"-I{HOSTS['mpich'].include}")
    text = "from mpi4py import MPI; n = bytearray(1); MPI.COMM_WORLD.Allreduce(bytearray(b'1'), n, MPI.BOR)"
    for preload in (f"{tool} {LIBRARY}", f"{LIBRARY} {tool}"):
        job = launch(
            "mpich",
            2,
            [python_of("mpich"), "-c", text],
            env={"LD_PRELOAD": preload},
            served=EVERYTHING,
        )
        assert job.returncode == 0 and "profiled" in job.stderr, job.text
        assert carried(job, "allreduce") == 1, job.stderr


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_profiling_tools_see_what_plugins_call_that_are_linked_with_them(host: str) -> None:
    tool = compile_c(host, "profiler.c", "-shared", "-fPIC")
    plugin = compile_c(host, "two_mpis.c", "-shared", "-fPIC", "-DPLUGIN", "-Wl,--no-as-needed", tool)
    job = launch(host, 2, [opener(), "libm.so.6", plugin], served=EVERYTHING)
    assert "good" in job.stdout and "profiled 1 0 1" in job.stderr, job.text
    assert carried(job, "allreduce") == 1, job.stderr


WAYS = [
    ("before", "linked"),
    ("linked", "before"),
    ("after", "linked"),
    ("linked", "after pmpi"),
    ("before", "after"),
    ("plugin before", "linked"),
    ("linked", "plugin before lazy"),
    ("plugin before address", "linked"),
    ("linked", "plugin after"),
    ("plugin after lazy", "linked"),
    ("plugin after address", "plugin before"),
]


@pytest.mark.parametrize("how", WAYS, ids=", ".join)
@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_calls_that_go_past_the_linker_are_served_too(host: str, how: tuple[str, str]) -> None:
    file = str(HOSTS[host].library)
    if "plugin" in " ".join(how):
        file = compile_c(host, "pingpong.c", "-shared", "-fPIC", "-DPLUGIN")
    job = launch(host, 2, [compile_c(host, "pingpong.c", "-ldl"), file, *how], timeout=20, served=EVERYTHING)
    assert "good" in job.stdout, job.text
    assert carried(job, "allreduce") == 100 and sent(job) == 100, job.stderr


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_plugins_that_bring_their_mpi_and_prefer_it_are_served(host: str) -> None:
    plugin = compile_c(host, "two_mpis.c", "-shared", "-fPIC", "-DPLUGIN")
    job = launch(host, 2, [opener(), "libm.so.6", plugin, "deep"], served=EVERYTHING)
    assert "good" in job.stdout and carried(job, "allreduce") == 1, job.text


def wrapped(host: str, how: str, served: Served) -> Completed:
    """Runs a program that knows MPI by a wrapper's table alone, as those do that use MPItrampoline."""
    wrapper = compile_c(host, "wrapper.c", "-shared", "-fPIC", "-DPLUGIN", "-Wno-int-to-pointer-cast")
    program = compiled("wrapper", (str(PROGRAMS / "wrapper.c"), "-ldl"))
    job = launch(host, 2, [program, wrapper, how], served=served)
    assert job.stdout == "good\n", job.text
    return job


@pytest.mark.parametrize("how", ["deep", "global"])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_an_mpi_behind_a_wrapper_s_table_is_served(host: str, how: str) -> None:
    job = wrapped(host, how, EVERYTHING)
    assert carried(job, "allreduce") == 100, job.text


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_an_mpi_in_a_namespace_of_its_own_works_without_nearfield(host: str) -> None:
    # dlmopen gives it another C library, whose loader's scope does not have what is preloaded.
    wrapped(host, "apart", NOTHING)


@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_ctypes_and_mpi4py_meet(host: str) -> None:
    worker = ROOT / "tests/mpi/worker_ctypes.py"
    program = [python_of(host), str(worker), str(HOSTS[host].library)]
    job = launch(host, 2, program, timeout=30, served=EVERYTHING)
    assert "good" in job.stdout and sent(job) == 100, job.text


UNKNOWN = {
    "a stub": ("libmpi-serial.so", []),
    "unknown": ("libmpi.so.99", ["-DPMPI", '-DVERSION="Some MPI 1.0"']),
    "Open MPI 1.10": ("libmpi.so.12", ["-DPMPI", '-DVERSION="Open MPI v1.10.7, package: x"']),
    "too old": ("libmpi.so.12", ["-DPMPI"]),
    "a tree of Open MPI 2": ("libmpi.so.0", ["-DPMPI", '-DVERSION="Open MPI v2.1.0a1"']),
    "some tree": ("libmpi.so.0", ["-DPMPI", '-DVERSION="Some MPI 1.0"']),
    "before the standard ABI": ("libmpi_abi.so.12", ["-DPMPI", '-DVERSION="MPICH Version: 4.3.0"']),
    "a draft of it": ("libmpi_abi.so.0", ["-DPMPI", '-DVERSION="MPICH Version: 4.3.0"']),
    "no Open MPI": ("libmpi.so.40", ["-DPMPI", '-DVERSION="Some MPI 1.0"']),
}


@pytest.mark.parametrize("kind", UNKNOWN)
def test_an_mpi_that_is_not_known_is_left_alone(kind: str) -> None:
    soname, options = UNKNOWN[kind]
    source = PROGRAMS / "serial_mpi.c"
    library = compile_library(source, soname, "-DLIBRARY", f"-Wl,-soname,{soname}", *options)
    program = compiled("serial", (str(source), library, f"-Wl,-rpath,{Path(library).parent}"))
    env = {**os.environ, "LD_PRELOAD": f"{LIBRARY}:{HEAP}"}
    job = subprocess.run([program], env=env, capture_output=True, text=True, timeout=20)
    assert job.stdout == "good\n" and job.returncode == 0, job.stderr
    assert job.stderr.count("\n") == 1 and soname in job.stderr and "without Nearfield" in job.stderr
    quiet = subprocess.run(
        [program], env={**env, "NEARFIELD_LOG": "error"}, capture_output=True, text=True, timeout=20
    )
    assert (quiet.stdout, quiet.stderr) == ("good\n", "")


@pytest.mark.parametrize("host, other", [("mpich", "openmpi"), ("openmpi", "mpich")])
def test_of_two_mpis_the_caller_s_counts(host: str, other: str) -> None:
    plugin = compile_c(host, "two_mpis.c", "-shared", "-fPIC", "-DPLUGIN")
    job = launch(host, 2, [opener(), str(HOSTS[other].library), plugin], served=EVERYTHING)
    assert "good" in job.stdout and carried(job, "allreduce") == 1, job.text


@pytest.mark.parametrize("sanitizer", ["address", "undefined", "leak"])
@pytest.mark.parametrize("host", hosts("mpich", "openmpi"))
def test_programs_with_sanitizers_run_and_are_watched(host: str, sanitizer: str, tmp_path: Path) -> None:
    program = compile_c(host, "overflow.c", f"-fsanitize={sanitizer}")
    # The hosts keep memory to the end.
    env = {
        **environment(host, False, {VARIABLE: f"{tmp_path}/{PATTERN}"}),
        "ASAN_OPTIONS": "detect_leaks=0",
        "LSAN_OPTIONS": "detect_leaks=0",
    }
    nearfield = [str(ROOT / ".venv/bin/nearfield"), "run"]
    job = run([*nearfield, *command(host, 2, [program])], env, 60)
    assert "good" in job.stdout and job.returncode == 0, job.text
    first = read_statistics(tmp_path)[0]
    assert first.sent == 1 and first.carried("barrier") == 1, first
    if sanitizer == "address":
        job = run([*nearfield, *command(host, 2, [program, "too far"])], env, 60)
        assert "heap-buffer-overflow" in job.text and "overflow.c" in job.text
