"""`nearfield model`, `explain` and `tune`: what is predicted, for which machines, and what is stored."""

import json
import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from nearfield import explain as explaining
from nearfield.job import LAUNCHERS, Job, present_job
from nearfield.libraries import program, without_nearfield
from tests.command.calling import nearfield
from tests.mpi.jobs import ROOT


def test_model_predicts_for_any_machine(tmp_path: Path) -> None:
    cells = tmp_path / "cells.json"
    plot = tmp_path / "plot.svg"
    done = nearfield(
        *(
            "model",
            "allreduce,alltoall",
            "--ranks",
            "2,12,192",
            "--sizes",
            "8,64K,16M",
            "--machine",
            "epyc-2x96",
        ),
        *("--json", str(cells), "--svg", str(plot)),
    )
    assert done.returncode == 0, done.stderr
    rows = json.loads(cells.read_text())
    assert {row["ranks"] for row in rows} == {2, 12, 192}
    for row in rows:
        paid = {name: ns + row["behind"].get(name, 0) for name, ns in row["ns"].items()}
        assert paid[row["chosen"]] == min(paid.values()), row
    assert any(row["behind"] for row in rows)
    assert "<svg" in plot.read_text()
    machine = tmp_path / "slow.toml"
    machine.write_text("line = 1e6\ncpus = 64\n")
    slow = nearfield("model", "barrier", "--ranks", "2", "--sizes", "8", "--machine", str(machine))
    assert slow.stdout.splitlines()[1].split()[4] == "1e+03", slow.stdout
    unknown = nearfield("model", "allreduce", "--machine", "cray")
    assert unknown.returncode == 2 and "knl-64" in unknown.stderr
    machine.write_text("lime = 3\n")
    wrong = nearfield("model", "allreduce", "--machine", str(machine))
    assert wrong.returncode == 2 and "line" in wrong.stderr


def test_calibration_is_stored_where_ranks_look(tmp_path: Path) -> None:
    env = {"XDG_CACHE_HOME": str(tmp_path)}

    def calibrate() -> dict:
        done = nearfield("model", "barrier", "--ranks", "2", "--sizes", "8", "--calibrate", **env)
        assert done.returncode == 0, done.stderr
        (stored,) = tmp_path.glob("nearfield/*.toml")
        return tomllib.loads(stored.read_text())

    assert "all_memory" in calibrate()
    # What several nodes have found out stays, whatever a node finds out about itself.
    set_figures(env, "net_latency=1234", "net_node_byte=0.5")
    found = calibrate()
    assert found["net_latency"] == 1234 and found["net_node_byte"] == 0.5 and found["line"] > 0


def set_figures(env: dict[str, str], *figures: str) -> subprocess.CompletedProcess:
    """Stores figures of this machine by the program that the command uses."""
    words = [str(program("nearfield-model")), "set", *figures]
    return subprocess.run(words, env={**os.environ, **env}, capture_output=True, text=True, timeout=10)


def test_a_rank_knows_its_job(monkeypatch: pytest.MonkeyPatch) -> None:
    for names in LAUNCHERS:
        for name in names[:2]:
            monkeypatch.delenv(name, raising=False)
    assert present_job() is None
    monkeypatch.setenv("PMI_RANK", "3")
    assert present_job() is None  # a launcher's, but of how many ranks?
    monkeypatch.setenv("PMI_SIZE", "1")
    assert present_job() is None
    monkeypatch.setenv("PMI_SIZE", "8")
    assert present_job() == Job(3, 8, "mpich")
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "0")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "4")
    assert present_job() == Job(0, 4, "ompi")
    assert without_nearfield("/a/b.so:/x/libnearfield.so /x/libnearfield-heap.so  c.so") == "/a/b.so c.so"
    assert without_nearfield("") == ""


def test_only_figures_of_a_machine_are_stored(tmp_path: Path) -> None:
    env = {"XDG_CACHE_HOME": str(tmp_path)}
    for wrong in (
        "net_latency",
        "net_latency=",
        "latency=3",
        "net_byte=-1",
        "net_byte=inf",
        "net_byte=1s",
        "=1",
    ):
        done = set_figures(env, "line=80", wrong)
        assert done.returncode == 2 and wrong in done.stderr, done.stderr
    assert not list(tmp_path.glob("nearfield/*"))
    assert set_figures(env, "net_byte=0.5").returncode == 0


def test_explain_knows_every_operation_and_messages(capsys: pytest.CaptureFixture[str]) -> None:
    table = (ROOT / "engine/collectives/operations.def").read_text()
    operations = re.findall(r"^(OPERATION|OF_MESSAGES)\((\w+)", table, re.MULTILINE)
    assert len(operations) > 20
    for kind, op in [*operations, ("OF_MESSAGES", "message")]:
        for size in (8, 4096, 1 << 20):
            found = explaining.explain(op, 8, size, "epyc-2x96")
            chosen = next(row for row in found["rows"] if row["name"] == found["chosen"])
            assert chosen["applies"] and chosen["about"]
            assert ("made_of" in found) == (kind == "OF_MESSAGES")
            explaining.show(found)
            assert (f"{size} bytes" in capsys.readouterr().out) == (op != "barrier")
        explaining.show(explaining.explain(op, 8, 8, "epyc-2x96", nodes=2))
        assert capsys.readouterr().out
    # By length: with its record, through buffers, from array to array.
    ways = [explaining.explain("message", 2, size, "epyc-2x96")["chosen"] for size in (8, 16 << 10, 64 << 20)]
    assert ways == ["record", "buffers", "direct"]
    short = nearfield("explain", "message", "--bytes", "128").stdout
    assert "keep\tnothing\tyes\t" in short and "demote\tCLDEMOTE\t" in short
    by_buffers = {"NEARFIELD_PROTOCOL": "copy-buffers"}
    assert ": buffers" in nearfield("explain", "message", "--bytes", "64M", **by_buffers).stdout


def test_explain_knows_nodes() -> None:
    arguments = ("explain", "allreduce", "--nodes", "64", "--bytes", "16M", "--machine", "epyc-2x96")
    done = nearfield(*arguments)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(
        "allreduce of 16777216 bytes on 64 nodes of 192 ranks: pipelined, by the model"
    )
    assert "chunks" in done.stdout and "on the network while nodes work" in done.stdout
    found = json.loads(nearfield(*arguments, "--ranks-per-node", "96", "--json").stdout)
    assert found["ranks"] == 64 * 96 and found["chosen"] == "pipelined"
    for row in found["rows"]:
        if row["name"] in ("leader", "lanes"):
            assert row["ns"] == pytest.approx(row["before"] + row["network"] + row["after"], rel=0.01)
    small = nearfield(*arguments[:-4], "--bytes", "8", "--ranks-per-node", "2").stdout
    assert " of it on the network and " in small and "network: " in small
    assert "the host serves it" in nearfield("explain", "scan", "--nodes", "2").stdout


def test_tune_writes_what_explain_and_ranks_read(tmp_path: Path) -> None:
    out = tmp_path / "tuned.toml"
    done = nearfield(
        "tune",
        *("--op", "alltoall,barrier", "--sizes", "64,64K", "--ranks", "2"),
        "--out",
        str(out),
        "--seconds",
        "0.1",
    )
    assert done.returncode == 0, done.stderr
    cells = tomllib.loads(out.read_text())["cell"]
    assert [(cell["op"], cell["ranks"], cell["bytes"]) for cell in cells] == [
        ("alltoall", 2, 64),
        ("alltoall", 2, 65536),
    ]
    assert all(cell["us"] > 0 and cell["staged"] in ("slots", "rounds") for cell in cells)
    found = nearfield("explain", "alltoall", "--bytes", "50K", NEARFIELD_TUNED=str(out)).stdout
    assert f"NEARFIELD_CHOOSE=file takes {cells[1]['algorithm']}" in found


def test_orders_are_simulated(tmp_path: Path) -> None:
    rows, plot = tmp_path / "rows.json", tmp_path / "plot.svg"
    arguments = (
        "model",
        "alltoall",
        "--simulate",
        "--ranks",
        "16",
        "--sizes",
        "8,1K",
        "--machine",
        "epyc-2x96",
    )
    done = nearfield(*arguments, "--json", str(rows), "--svg", str(plot))
    assert done.returncode == 0, done.stderr
    assert "Simulated" in plot.read_text()
    found = {row["order"]: row for row in json.loads(rows.read_text()) if row["bytes"] == 1024}
    assert all(row["simulated"] for row in found.values())
    # What another group has written has to come from there, once; at one member after the other it takes longest.
    assert found["pull-rotated"]["far"] == 2 * 8 * 8 * 1024 // 64
    assert found["pull-linear"]["ns"] > found["pull-rotated"]["ns"]
    too_many = nearfield("model", "alltoall", "--simulate", "--ranks", "512", "--machine", "epyc-2x96")
    assert too_many.returncode == 2 and "192" in too_many.stderr
