"""`nearfield model --calibrate` under a launcher: the network between nodes, measured and stored on each of them."""

from __future__ import annotations

import math
import re
import tomllib
from pathlib import Path

import pytest

from tests.mpi.jobs import HOSTS, ROOT, environment, hosts
from tests.nodes.bed import Nodes
from tests.nodes.beds import MAIN, made_or_skip
from tests.nodes.jobs import Ended, blocks, run_job
from tests.selection import FULL, per_change

CALIBRATE = [
    str(ROOT / ".venv/bin/nearfield"),
    "model",
    "bcast",
    "--calibrate",
    "--nodes",
    "2",
    "--sizes",
    "8",
]
FIGURES = {"net_latency", "net_message", "net_byte", "net_node_message", "net_node_byte"}


def calibrate(nodes: Nodes, host: str, placement: list[int], cache: Path, nearfield: bool = False) -> Ended:
    """Runs the command on every rank; what it stores lies below `cache`."""
    command = ["env", f"PYTHONPATH={ROOT}", *CALIBRATE]
    env = environment(host, nearfield, {"XDG_CACHE_HOME": str(cache)})
    return run_job(nodes, HOSTS[host], placement, command, env, timeout=60)


def stored(nodes: Nodes, cache: Path, node: int = 0) -> dict:
    """The figures that ranks on a node will read."""
    return tomllib.loads((cache / "nearfield" / f"{nodes.names[node]}.toml").read_text())


@pytest.mark.parametrize("host", per_change(hosts("mpich", "openmpi", "impi", "debian-openmpi")))
def test_the_network_is_measured_and_stored_on_every_node(tmp_path: Path, host: str) -> None:
    with made_or_skip(Nodes(2, own_cpus=True)) as nodes:
        ended = calibrate(nodes, host, blocks(2, 2), tmp_path)
        assert ended.returncode == 0 and not ended.timed_out, ended.text
        first, second = (stored(nodes, tmp_path, node) for node in (0, 1))
    assert {name: first[name] for name in FIGURES} == {name: second[name] for name in FIGURES}
    assert 1_000 < first["net_latency"] < 1_000_000 and first["net_message"] > 0
    assert 0.01 < first["net_byte"] < 100 and 0.01 < first["net_node_byte"] < 100
    assert ended.out[1:] == ["", "", ""] and ended.out[0].startswith("predicted, not measured")
    shown = re.search(r"network: ([\d.e+]+) us", ended.out[0])
    assert shown and float(shown[1]) == pytest.approx(first["net_latency"] / 1000, rel=0.01)


# Networks, and between what their figures lie. Messages are late where others use the CPUs: by milliseconds at most.
SLOW = {
    "bytes": ({"delay": 50, "rate": 1e8}, {"net_byte": (56, 104), "net_node_byte": (56, 104)}),
    "latency": ({"delay": 5000}, {"net_latency": (5e6, 1e7)}),
}


@FULL
@pytest.mark.parametrize("network", SLOW)
@pytest.mark.parametrize("host", hosts("mpich", "openmpi", "impi"))
def test_a_slow_network_is_found_to_be_as_slow_as_it_is(tmp_path: Path, host: str, network: str) -> None:
    shape, bounds = SLOW[network]
    with made_or_skip(Nodes(2, own_cpus=True, **shape)) as nodes:
        least = dict.fromkeys(bounds, math.inf)
        for _ in range(6):
            ended = calibrate(nodes, host, blocks(2, 2), tmp_path)
            assert ended.returncode == 0 and not ended.timed_out, ended.text
            figures = stored(nodes, tmp_path)
            assert figures["net_latency"] >= 1000 * shape["delay"]
            least = {name: min(figures[name], least[name]) for name in bounds}
            if all(low <= least[name] <= high for name, (low, high) in bounds.items()):
                return
    raise AssertionError(f"{least} are not within {bounds}")


@FULL
@pytest.mark.parametrize("host", MAIN)
def test_the_plain_host_is_measured_and_other_figures_stay(tmp_path: Path, host: str) -> None:
    with made_or_skip(Nodes(3, own_cpus=True)) as nodes:
        calibrate(nodes, host, blocks(1, 1), tmp_path)
        file = tmp_path / "nearfield" / f"{nodes.names[0]}.toml"
        file.write_text(re.sub(r"(?m)^turn = .*$", "turn = 4321", file.read_text()))
        # Nodes of two, one and one: a lane that all have, and the last node without a partner.
        ended = calibrate(nodes, host, blocks(2, 1, 1), tmp_path, nearfield=True)
        assert ended.returncode == 0 and not ended.timed_out, ended.text
        assert stored(nodes, tmp_path)["turn"] == 4321
        assert stored(nodes, tmp_path, 2)["net_byte"] == stored(nodes, tmp_path)["net_byte"]


def test_one_node_has_no_network(tmp_path: Path) -> None:
    with made_or_skip(Nodes(2)) as nodes:
        ended = calibrate(nodes, "mpich", blocks(2), tmp_path)
    assert ended.returncode != 0 and "all 2 ranks are on one node" in ended.text
    assert ended.text.count("one node") == 1 and not list(tmp_path.glob("nearfield/*"))
