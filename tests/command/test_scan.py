"""`nearfield bench --scan`: its sizes, and what it says of rows that are made up."""

import json
from pathlib import Path

import pytest

from nearfield.scan import bumps, bumps_of, scanned
from tests.command.calling import nearfield


def curve(times: dict[int, float], noise: float = 0.01, **others) -> list[dict]:
    """Rows of one operation, microseconds by size, whose quartiles lie `noise` of these away."""
    about = {
        "op": "bcast",
        "ranks": 2,
        "mode": "nearfield",
        "buffers": "used",
        "state": "near",
        "host": "impi",
    }
    about |= {"heap": "shared", "protocol": "auto", "loop": "own", "algorithm": "slots"} | others
    return [
        about | {"bytes": size, "median": us, "lower": us * (1 - noise), "upper": us * (1 + noise)}
        for size, us in times.items()
    ]


def found_in(times: dict[int, float], noise: float = 0.01) -> list[tuple[int, int]]:
    """First and last size of what stands out."""
    return [(b.inside[0]["bytes"], b.inside[-1]["bytes"]) for b in bumps_of(curve(times, noise))]


def test_what_has_elements_is_measured_at_whole_ones() -> None:
    (messages, odd), (reductions, whole) = scanned(
        ["latency", "allreduce", "scatter", "ddt-vector"], [8, 4096]
    )
    assert (messages, reductions) == (["latency", "scatter"], ["allreduce", "ddt-vector"])
    assert {2047, 2048, 2049, 3072} <= set(odd)
    assert {2040, 2048, 2056, 3072} <= set(whole) and all(size % 8 == 0 for size in whole)
    assert [group for group, _ in scanned(["bcast"], [8, 64])] == [["bcast"]]


def test_a_cell_that_takes_longer_than_both_neighbours_stands_out() -> None:
    assert found_in({8: 0.1, 16: 0.3, 32: 0.12}) == [(16, 16)]
    assert found_in({8: 0.1, 16: 0.13, 32: 0.12}) == []  # less than 1.2 times
    assert found_in({8: 0.1, 16: 0.3, 32: 0.31}) == []  # a step
    assert found_in({8: 0.4, 16: 0.3, 32: 0.12}) == []  # the ends have one neighbour


def test_a_slow_class_of_sizes_stands_out_as_one() -> None:
    times = {64: 0.1, 128: 0.1, 129: 0.6, 192: 0.5, 256: 0.55, 257: 0.2, 384: 0.2, 512: 0.9, 513: 0.2}
    assert found_in(times) == [(129, 256), (512, 512)]


def test_what_noise_explains_does_not_stand_out() -> None:
    times = {8: 1.0, 16: 1.5, 32: 1.0}
    assert found_in(times, noise=0.1) == [(16, 16)]
    assert found_in(times, noise=0.3) == []


def test_curves_are_not_mixed() -> None:
    quick, slow = {8: 0.1, 16: 0.1, 32: 0.1}, {8: 0.5, 16: 0.5, 32: 0.5}
    for other in ({"op": "scatter"}, {"state": "far"}, {"ranks": 8}, {"buffers": "warm"}, {"host": "mpich"}):
        assert bumps([*curve(quick), *curve(slow, **other)]) == []
    assert bumps(curve({8: 0.1, 16: 0.3, 32: 0.1}, mode="plain")) == []
    both = [*curve({8: 0.1, 16: 0.3, 32: 0.1}), *curve({8: 0.1, 16: 0.1, 32: 0.1}, mode="plain")]
    assert [bump.times for bump in bumps(both)] == [pytest.approx(3)]


def test_a_scan_measures_and_reports(tmp_path: Path) -> None:
    out = tmp_path / "rows.json"
    job = nearfield(
        "bench", "--op", "bcast,reduce", "--sizes", "8:32", "--seconds", "0.02", "--scan", "--json", out
    )
    assert job.returncode == 0, job.stderr
    rows = json.loads(out.read_text())
    sizes = {op: {row["bytes"] for row in rows if row["op"] == op} for op in ("bcast", "reduce")}
    assert sizes == {"bcast": {8, 9, 12, 15, 16, 17, 24, 31, 32}, "reduce": {8, 16, 24, 32}}
    assert "times as long as both" in job.stdout
