"""`nearfield run` tells Open MPI to share CPUs where ranks outnumber its slots and nobody has said otherwise."""

import os
from pathlib import Path

import pytest

from tests.command.calling import nearfield
from tests.mpi.jobs import HOSTS, host_environment, hosts

MANY = str(len(os.sched_getaffinity(0)) + 1)
SETS = {"OMPI_MCA_rmaps_base_oversubscribe": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}


@pytest.fixture
def launcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A launcher by name that prints the environment it was started with; nobody has said anything."""
    for variable in [name for name in os.environ if "_MCA_" in name or name in ("SLURM_JOB_ID", "PBS_JOBID")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("HOME", str(tmp_path))
    made = tmp_path / "mpiexec"
    made.write_text("#!/bin/sh\nenv\n")
    made.chmod(0o755)
    return made


def told(launcher: Path, *words: str, **env: str) -> dict[str, str]:
    """What a launcher finds in its environment of launchers' settings when it is started with these words."""
    done = nearfield("run", "--log", "off", str(launcher), *words, **env)
    assert done.returncode == 0, done.stderr
    settings = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    return {name: value for name, value in settings.items() if "_MCA_" in name}


@pytest.mark.parametrize(
    "words", [["-n", MANY], ["--np", MANY], ["-x", "A", "-np", MANY], ["-n", "1", "a", ":", "-n", MANY, "b"]]
)
def test_more_ranks_than_slots_share_cpus(launcher: Path, words: list[str]) -> None:
    assert told(launcher, *words, "./program") == SETS


@pytest.mark.parametrize(
    "words",
    [
        ["-n", "1", "./program"],
        ["-n", "1", "./program", "-n", "1000"],  # the program's own
        ["./program"],
        ["-n", MANY, "--map-by", "core", "./program"],
        ["-n", MANY, "--host", "a,b", "./program"],
        ["-n", MANY, "--mca", "rmaps_base_no_oversubscribe", "1", "./program"],
    ],
)
def test_otherwise_nothing_is_said(launcher: Path, words: list[str]) -> None:
    assert told(launcher, *words) == {}


def test_who_has_decided_is_not_overruled(launcher: Path) -> None:
    mine = {"PRTE_MCA_rmaps_default_mapping_policy": "slot"}
    assert told(launcher, "-n", MANY, "./program", **mine) == mine
    assert told(launcher, "-n", MANY, "./program", SLURM_JOB_ID="7") == {}
    (launcher.parent / ".prte").mkdir()
    (launcher.parent / ".prte/mca-params.conf").write_text("rmaps_default_mapping_policy = slot\n")
    assert told(launcher, "-n", MANY, "./program") == {}


def test_another_command_is_no_launcher(launcher: Path) -> None:
    other = launcher.rename(launcher.parent / "program")
    assert told(other, "-n", MANY) == {}


@pytest.mark.parametrize("host", hosts("openmpi", "debian-openmpi"))
def test_open_mpi_starts_them(launcher: Path, host: str) -> None:
    words = [str(HOSTS[host].mpiexec), "-n", MANY, "echo", "started"]
    done = nearfield("run", "--log", "off", *words, **host_environment(HOSTS[host]))
    assert done.stdout.count("started") == int(MANY), done.stdout + done.stderr
