"""Prints the verdict of `nearfield compare`: a table, the gain and what brings it, and whether the outputs are the same."""

from __future__ import annotations

import statistics
from typing import Any

from nearfield.compared import BOTH, HEAP, MESSAGES, MODES, PLAIN, Compared, differ, quartiles
from nearfield.machine import describe_machine
from nearfield.sameness import MOST
from nearfield.tables import print_columns

NOTHING = 0.01  # a gain or loss that is none
MOSTLY = 2 / 3  # of a gain
SHORT = 1.0  # seconds of a run, of which starting the job is too large a part
FEW = 5  # runs; by chance fewer are all on one side of 1 in more than one of 16 cases


def show(found: Compared) -> None:
    """Prints the table and the sentences of the verdict."""
    rounds = len(found.runs[PLAIN])
    runs = f"{rounds} run{'s' * (rounds > 1)} each way, in turns"
    print(f"{' '.join(found.command)}\n{runs}; {describe_machine()}\n", flush=True)
    titles = ["", "wall s", "CPU s", "ratio", "CPU ratio", "in MPI"]
    print_columns(titles, [_row(found, mode) for mode in MODES], [None] * len(MODES))
    print()
    for line in verdict(found):
        print(line)


def _row(found: Compared, mode: str) -> list[str]:
    if not found.figures(mode, "wall"):
        return [mode, *["-"] * 5]
    share = found.in_mpi.get(mode)
    compared = mode != PLAIN and found.ratios(mode)
    return [
        mode,
        *(_range(found.figures(mode, figure)) for figure in ("wall", "cpu")),
        _range(found.ratios(mode), 2) if compared else "",
        f"{quartiles(found.ratios(mode, 'cpu'))[1]:.2f}" if compared else "",
        "" if share is None else _percent(share),
    ]


def _range(values: list[float], digits: int = 3) -> str:
    lower, middle, upper = quartiles(values)
    return f"{middle:.{digits}f} ({lower:.{digits}f}-{upper:.{digits}f})"


def _percent(share: float) -> str:
    return f"{share:.0%}" if share >= 0.01 or share == 0 else "less than 1%"


def verdict(found: Compared) -> list[str]:
    """The sentences below the table."""
    return [*_bound(found), *_served(found), *_gain(found), *_outputs(found), *_statuses(found)]


def _bound(found: Compared) -> list[str]:
    share = found.in_mpi.get(PLAIN)
    if share is None:
        return ["The share of time in MPI is not known: no rank recorded it."]
    inside = _percent(share)
    return [
        f"{inside} of your time is in MPI: {inside.replace('less', 'at most less') if share < 0.01 else f'at most {inside}'} can be gained by faster MPI."
    ]


def _served(found: Compared) -> list[str]:
    return [f"Nothing was served: {line}." for line in found.unserved]


def word(ratios: list[float], seconds: float) -> str:
    """The verdict in a word: faster, slower, undecided, too short (runs of so many seconds) or too few (runs)."""
    if seconds < SHORT:
        return "too short"
    if len(ratios) < FEW:
        return "too few"
    middle = statistics.median(ratios)
    if not differ(ratios) or abs(middle - 1) <= NOTHING:
        return "undecided"
    return "slower" if middle > 1 else "faster"


def _gain(found: Compared) -> list[str]:
    ratios = {mode: found.ratios(mode) for mode in MODES[1:]}
    if not ratios[BOTH]:
        return []
    lower, middle, upper = quartiles(ratios[BOTH])
    rounds = len(ratios[BOTH])
    if found.unserved:
        return []
    seconds = quartiles(found.figures(PLAIN, "wall"))[1]
    told = word(ratios[BOTH], seconds)
    if told == "too short":
        return [
            f"Runs of {seconds:.2f} s are too short to show a gain: most of this time is the start of the job."
        ]
    if told == "too few":
        return [f"{rounds} run{'s' * (rounds > 1)} each way cannot show a gain; run at least {FEW} (--runs)."]
    if told == "undecided":
        lines = [
            f"{rounds} runs show no difference: with Nearfield it takes {middle:.2f} of the time ({lower:.2f}-{upper:.2f})."
        ]
    elif told == "slower":
        lines = [
            f"With Nearfield it takes longer: {middle:.2f} of the time ({lower:.2f}-{upper:.2f}). That is a defect; please report it."
        ]
    else:
        lines = [
            f"With Nearfield it takes {middle:.2f} of the time ({lower:.2f}-{upper:.2f}): {1 / middle:.2f} times as fast."
        ]
        lines += _whose(
            middle, {mode: quartiles(ratios[mode])[1] for mode in (HEAP, MESSAGES) if ratios[mode]}
        )
    for mode, how in (
        (HEAP, "LD_PRELOAD of libnearfield-heap.so"),
        (MESSAGES, "`nearfield run --heap off`"),
    ):
        of_both = found.ratios(mode, to=BOTH)
        alone = statistics.median(ratios[mode] or [1])
        if differ(of_both) and 1 - statistics.median(of_both) > NOTHING and alone < 1:
            lines.append(f"It takes less time with {mode} than with both: {alone:.2f} ({how}).")
    return lines


def _whose(both: float, alone: dict[str, float]) -> list[str]:
    """A sentence that tells whether the heap, MPI or both bring the gain; pre: there is a gain."""
    if len(alone) < 2:
        return []
    heap, messages = (1 - alone[mode] >= MOSTLY * (1 - both) for mode in (HEAP, MESSAGES))
    told = f"the heap alone takes {alone[HEAP]:.2f}, MPI alone {alone[MESSAGES]:.2f}"
    if heap and messages:
        return [f"The heap alone and MPI alone each give most of the gain: {told}."]
    if heap:
        return [f"Most of the gain comes from the allocator: {told}."]
    if messages:
        return [f"Most of the gain comes from the messages: {told}."]
    return [f"The gain needs both: {told}."]


def _outputs(found: Compared) -> list[str]:
    if not found.prints:
        return ["Outputs: the command prints nothing, so only exit statuses were compared."]
    wrong = {mode: one for mode, one in found.outputs.items() if not one.same}
    lines = []
    for mode, one in wrong.items():
        lines.append(f"Outputs DIFFER with {mode}:")
        for what, said in (("only plain", one.missing), (f"only with {mode}", one.added)):
            lines += [f"  {what}: {line.strip()}" for line in said[:MOST]]
            lines += [f"  and {len(said) - MOST} more"] * (len(said) > MOST)
    if wrong or not found.outputs:
        return lines
    if all(one.exact for one in found.outputs.values()):
        return ["Outputs: the same to the last byte."]
    left_out = list(dict.fromkeys(line for one in found.outputs.values() for line in one.left_out))
    rounded = list(dict.fromkeys(line for one in found.outputs.values() for line in one.rounded))
    if not left_out and not rounded:
        return ["Outputs: the same lines, in an order that changes from run to run."]
    lines = []
    if rounded:
        lines += [
            "Outputs: the same, but for last digits. MPI does not fix the order of sums; Nearfield adds in the order of ranks, other",
            'libraries add pairs first (docs/user/compare.md, "The same results"):',
            *_shown(rounded),
        ]
    if left_out:
        lines += [
            "Outputs: the same, but for numbers that are times or change from one plain run to the next too:",
            *_shown(left_out),
        ]
    return lines


def _shown(lines: list[str]) -> list[str]:
    return [
        *(f"  {line.strip()}" for line in lines[:MOST]),
        *[f"  and {len(lines) - MOST} more"] * (len(lines) > MOST),
    ]


def _statuses(found: Compared) -> list[str]:
    lines = []
    for mode in MODES:
        failed = found.failed(mode)
        if not failed:
            continue
        why = (
            "was stopped: it took ten times as long" if failed[0].late else f"exit status {failed[0].status}"
        )
        lines.append(f"{mode} FAILED in {len(failed)} of {len(found.runs[mode])} runs: {why}.")
        lines += [f"  {line}" for line in failed[0].errors.strip().splitlines()[-MOST:]]
    return lines or [f"Exit statuses: {found.status} in all runs."]


def as_json(found: Compared) -> dict[str, Any]:
    """The figures."""
    modes = {}
    for mode in MODES:
        modes[mode] = {"statuses": [run.status for run in found.runs[mode]]}
        for name, values in (
            ("wall", found.figures(mode, "wall")),
            ("cpu", found.figures(mode, "cpu")),
            ("ratio", found.ratios(mode)),
        ):
            if values:
                lower, middle, upper = quartiles(values)
                modes[mode][name] = {"median": middle, "lower": lower, "upper": upper, "all": values}
        modes[mode]["in_mpi"] = found.in_mpi.get(mode)
        if mode in found.outputs:
            one = found.outputs[mode]
            modes[mode]["output"] = {
                key: getattr(one, key) for key in ("same", "exact", "left_out", "missing", "added", "rounded")
            }
    return {
        "command": found.command,
        "machine": describe_machine(),
        "same": found.same,
        "verdict": verdict(found),
        "modes": modes,
    }
