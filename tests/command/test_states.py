"""States of the machine that blocks of a benchmark were measured in."""

import pytest

from nearfield.states import NOT_TIMED, States, joined, rows_of_blocks
from nearfield.summary import cells_of, show_summary


def measured(blocks: list[list[float]], **about: object) -> dict:
    """What the worker prints of a cell."""
    row = {
        "op": "bcast",
        "bytes": 8,
        "buffers": "warm",
        "loop": "own",
        "mode": "plain",
        "host": "a",
        "calls": 20,
    }
    return row | about | {"blocks": blocks}


def test_rows_of_several_jobs_become_one_with_quartiles() -> None:
    jobs = [[measured([[0.0, float(time)]])] for time in (5, 1, 4, 2, 3)]
    (row,) = rows_of_blocks(joined(jobs))
    assert (row["lower"], row["median"], row["upper"], row["iterations"]) == (2.0, 3.0, 4.0, 100)
    assert row["mean"] == 3.0 and row["state"] == NOT_TIMED and not {"blocks", "calls"} & set(row)


def test_a_mesh_is_one_state_and_hosts_meet_in_it() -> None:
    """Jobs of one host had the short paths, those of the other the long ones; a border at 120 ns would keep them apart."""
    rows = rows_of_blocks(
        [measured([[97.0, 2.0], [104.0, 2.0]]), measured([[131.0, 1.0], [138.0, 1.0]], host="b")]
    )
    assert {row["state"] for row in rows} == {"97-138 ns"} and [row["line_ns"] for row in rows] == [100, 134]
    assert len(cells_of([row | {"algorithm": ""} for row in rows])[0]["plain"]) == 2


def test_blocks_of_a_job_whose_ranks_have_moved_are_put_by_their_own_lines() -> None:
    moved = measured([[48.0, 1.0], [52.0, 1.0], [201.0, 4.0], [50.0, 1.0], [212.0, 4.0], [208.0, 4.0]])
    near, far = rows_of_blocks([moved])
    assert (near["state"], near["median"], near["iterations"]) == ("48-52 ns", 1.0, 60)
    assert (far["state"], far["median"], far["line_ns"]) == ("201-212 ns", 4.0, 208)


def test_states_have_no_name_where_nothing_was_timed() -> None:
    assert States([]).name(0) == States([0, 0]).name(0) == NOT_TIMED
    assert States([50.0]).name(400) == "50 ns"


def test_the_summary_says_who_was_in_a_state_alone(capsys: pytest.CaptureFixture[str]) -> None:
    def of(host: str, line: float) -> list[dict]:
        about = {"host": host, "algorithm": "slots", "ranks": 2, "machine": "m"}
        return [
            measured([[line, 2.0]], **about, bytes=size, mode=mode)
            for size in (8, 64)
            for mode in ("plain", "nearfield")
        ]

    show_summary(rows_of_blocks(of("mpich", 50) + of("impi", 200)))
    shown = capsys.readouterr().out
    assert "a line one way: 50 ns: no cell with all hosts; in this state: mpich" in shown
    show_summary(rows_of_blocks(of("mpich", 100) + of("impi", 140)))
    assert "no cell with all hosts" not in capsys.readouterr().out
