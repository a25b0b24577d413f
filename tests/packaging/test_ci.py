"""The action and the template for continuous integration: their steps, run one by one as a runner does."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.mpi.jobs import HOSTS, ROOT, compile_c, hosts
from tests.packaging.conftest import clean_environment
from tests.selection import FULL

MORE_THAN_CPUS = len(os.sched_getaffinity(0)) + 1


class Runner:
    """Steps of a job, each a shell of its own, with the variables that the steps before it have left."""

    def __init__(self, place: Path) -> None:
        packages = [path for path in sys.path if path.endswith("site-packages")]
        subprocess.run([sys.executable, "-m", "venv", str(place / "venv")], check=True)
        (own,) = place.glob("venv/lib/python3*/site-packages")
        # What the wheel depends on, so that nothing is fetched.
        (own / "others.pth").write_text("\n".join(packages) + "\n")
        self.place = place
        for name in ("variables", "page"):
            (place / name).touch()
        self.env = clean_environment() | {
            "PATH": f"{place}/venv/bin:{os.environ['PATH']}",
            "PIP_NO_INDEX": "1",
            "GITHUB_ENV": str(place / "variables"),
            "GITHUB_STEP_SUMMARY": str(place / "page"),
            "RUNNER_TEMP": str(place / "temp"),
            "CI_PROJECT_DIR": str(place / "project"),
        }

    def step(self, text: str, **env: str) -> str:
        """Runs a step; what it printed."""
        left = dict(line.split("=", 1) for line in (self.place / "variables").read_text().splitlines())
        done = subprocess.run(
            ["sh", "-e", "-c", text],
            cwd=self.place,
            env=self.env | left | env,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, text + done.stdout + done.stderr
        return done.stdout

    def action(self, name: str, **inputs: str) -> str:
        """Runs the steps of a composite action of which conditions are `inputs.NAME == 'TEXT'`; what they printed."""
        read = yaml.safe_load((ROOT / "packaging" / name / "action.yml").read_text())
        values = {key: one.get("default", "") for key, one in read.get("inputs", {}).items()} | inputs
        said = ""
        for step in read["runs"]["steps"]:
            condition = step.get("if", "").split("'")
            if condition != [""] and values[condition[0].split(".")[1].split()[0]] != condition[1]:
                continue
            env = {}
            for key, text in step.get("env", {}).items():
                env[key] = values[text.removeprefix("${{ inputs.").removesuffix(" }}")]
            said += self.step(step["run"], **env)
        return said


def job(host: str) -> str:
    """The command line of a job with more ranks than CPUs, of which the launcher has been told nothing."""
    return f"{HOSTS[host].mpiexec} -n {MORE_THAN_CPUS} {compile_c(host, 'contained.c')} 1024"


@pytest.mark.parametrize(
    "host",
    [*hosts("mpich"), *(pytest.param(*one.values, marks=[*one.marks, FULL]) for one in hosts("openmpi"))],
)
def test_the_action_has_later_steps_served(wheel: Path, tmp_path: Path, host: str) -> None:
    runner = Runner(tmp_path)
    runner.action("action", wheel=str(wheel))
    assert "good" in runner.step(job(host), LD_LIBRARY_PATH=str(HOSTS[host].library.parent))
    said = runner.action("action/summary")
    assert f"1 job, {MORE_THAN_CPUS} ranks" in said and "Most often: allreduce" in said, said
    assert (tmp_path / "page").read_text() == said


@pytest.mark.full
def test_the_action_may_leave_later_steps_alone(wheel: Path, tmp_path: Path) -> None:
    runner = Runner(tmp_path)
    runner.action("action", wheel=str(wheel), preload="false")
    assert "libnearfield" not in runner.step("cat /proc/self/maps")
    assert "libnearfield" in runner.step("nearfield run --log off cat /proc/self/maps")


@pytest.mark.full
def test_the_template_does_the_same(wheel: Path, tmp_path: Path) -> None:
    template = yaml.safe_load((ROOT / "packaging/gitlab/nearfield.yml").read_text())[".nearfield"]
    runner = Runner(tmp_path)
    variables = template["variables"] | {
        "NEARFIELD_WHEEL": str(wheel),
        "LD_LIBRARY_PATH": str(HOSTS["openmpi"].library.parent),
    }
    # One shell for what comes before a job's script and that; another for what comes after.
    assert "good" in runner.step("\n".join([*template["before_script"], job("openmpi")]), **variables)
    said = runner.step("\n".join(template["after_script"]), **variables)
    assert f"1 job, {MORE_THAN_CPUS} ranks" in said, said
