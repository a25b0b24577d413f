"""`nearfield explain`: which algorithm a call would take, why, and what the others would cost."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from rich.console import Console

from nearfield.model import ask, describe_network
from nearfield.tables import print_table
from nearfield.tune import stored_tuning, tuned_cell

PHASES = ("ns", "before", "network", "after")


def explain(op: str, ranks: int, size: int, machine: str) -> dict[str, Any]:
    """The cell (see model.predict) with `rows`, one per algorithm, and `tuned`, the file's cell or None.

    Rows have name, applies, ns, fixed (ns that do not depend on the length), reach and about; those of messages, and of
    operations that are made of them, what show_messages says. Raises ValueError where there is nothing to choose.
    """
    if ranks < 2 and op != "message":
        raise ValueError(f"no algorithm applies to {op} on one rank: the call is a copy at most")
    cell, *rows = ask("explain", op, str(ranks), str(size), machine)
    path = Path(os.environ.get("NEARFIELD_TUNED") or stored_tuning())
    return cell | {"rows": rows, "tuned": tuned_cell(op, ranks, size, path), "file": str(path)}


def explain_nodes(op: str, nodes: int, ranks_per_node: int, size: int, machine: str) -> dict[str, Any]:
    """The cell (see model.predict_nodes) with `rows`, one per algorithm over nodes.

    Rows have name, applies, ns, before, network, after (ns on nodes, between them, on nodes; of a chunk where the algorithm
    works in chunks) and about.
    """
    cell, *rows = ask("explain", op, f"{nodes}x{ranks_per_node}", str(size), machine)
    return cell | {"rows": rows}


def show_messages(found: dict[str, Any]) -> None:
    """Prints the explanation of a message, or of an operation that is made of messages.

    Rows have name, applies, from, to (bytes; None: any), needs and about; `publications`, how a record of several
    cache lines may be handed over, name, possible, needs and about.
    """
    console = Console(highlight=False, soft_wrap=True)
    chosen = next(row for row in found["rows"] if row["name"] == found["chosen"])
    what = "a message" if found["op"] == "message" else f"{found['op']} with messages"
    console.print(f"{what} of {found['bytes']} bytes: {chosen['name']}")
    console.print(f"  {chosen['about']}", markup=False)
    if found["op"] != "message":
        console.print(
            "  made of messages, one for each pair that has something for the other; each chooses for itself"
        )
    if found["nodes"] > 1:
        whole = found["op"] != "message" and found["op"] not in ("alltoallv", "alltoallw")
        console.print(
            "  over several nodes the host carries it"
            if whole
            else "  between ranks of a node; between nodes the host carries it"
        )
    if found["chosen"] in ("direct", "calls"):
        console.print(
            "  where arrays cannot be reached: buffers; NEARFIELD_CHOOSE=trial tries those that can be had"
        )
    words = [
        [
            row["name"],
            f"{row['from']}" if row["to"] != 0 else "-",
            "any" if row["to"] is None else f"{row['to']}",
            row["needs"],
            row["about"],
        ]
        for row in found["rows"]
    ]
    titles = ("way", "from bytes", "to", "needs", "what it does")
    print_table(titles, words, ["bold" if row is chosen else None for row in found["rows"]])
    if found["chosen"] == "record":
        kinds = [
            [kind["name"], kind["needs"], "yes" if kind["possible"] else "no", kind["about"]]
            for kind in found["publications"]
        ]
        print_table(("beyond a cache line", "needs", "here", "how it is handed over"), kinds)


def show_nodes(found: dict[str, Any]) -> None:
    """Prints the explanation of a call over nodes."""
    if "made_of" in found:
        return show_messages(found)
    console = Console(highlight=False, soft_wrap=True)
    where = f"{found['nodes']} nodes of {found['ranks_per_node']} ranks"
    console.print(f"{_call(found)} on {where}: {found['chosen']}, by the model")
    chosen = next((row for row in found["rows"] if row["name"] == found["chosen"]), None)
    if chosen is None:
        console.print("  no algorithm over nodes applies; the host carries it")
        return
    console.print(f"  {chosen['about']}", markup=False)
    on_nodes = chosen["before"] + chosen["after"]
    if chosen["name"] == "pipelined" and found["chunks"] > 1:
        phases = f"each of {found['chunks']} chunks {_us(chosen['network'])} on the network while nodes work {_us(on_nodes)}"
    else:
        phases = f"{_us(chosen['network'])} of it on the network and {_us(on_nodes)} on the nodes"
    console.print(f"  predicted to take least: {_us(chosen['ns'])}, {phases}")
    console.print(f"  {describe_network(found['network'])}")
    console.print("  NEARFIELD_CHOOSE=trial tries these and the host's own in the first calls of a job")
    rows = sorted(found["rows"], key=lambda row: (not row["applies"], row["ns"]))
    words = [
        [
            row["name"],
            *(_us(row[key]) if row["applies"] and row[key] else "-" for key in PHASES),
        ]
        for row in rows
    ]
    for row, line in zip(rows, words):
        line[1] = line[1] if row["applies"] else "does not apply"
        line.append(row["about"])
    titles = ("algorithm", "predicted", "on nodes", "network", "on nodes again", "what it does")
    print_table(titles, words, ["bold" if row is chosen else None for row in rows])


def show(found: dict[str, Any]) -> None:
    """Prints the explanation."""
    if "made_of" in found:
        return show_messages(found)
    console = Console(highlight=False, soft_wrap=True)
    rows = {row["name"]: row for row in found["rows"]}
    chosen = rows[found["chosen"]]
    console.print(f"{_call(found)} on {found['ranks']} ranks: {chosen['name']}")
    console.print(f"  {chosen['about']}", markup=False)
    console.print(
        f"  cheapest of those that apply: {_us(chosen['ns'])}, of which {_us(chosen['fixed'])} for meeting and"
        f" {_us(chosen['ns'] - chosen['fixed'])} for the bytes"
    )
    if chosen["behind"]:
        console.print(f"  and {_us(chosen['behind'])} when the program next writes to what peers have read")
    if chosen["reach"] != "no":
        console.print(f"  where peers cannot reach {chosen['reach']}: {found['staged']}")
    if len(found["promising"]) > 1:
        console.print(f"  NEARFIELD_CHOOSE=trial tries {', '.join(found['promising'])} in the first calls")
    if found["tuned"]:
        console.print(
            f"  NEARFIELD_CHOOSE=file takes {found['tuned']['algorithm']}, measured {found['tuned']['us']:.3g} us"
            f" ({found['file']})",
            markup=False,
        )
    rows_in_order = sorted(found["rows"], key=lambda row: (not row["applies"], row["ns"] + row["behind"]))
    words = []
    for row in rows_in_order:
        usable = row["applies"] and row["ns"] < 1e11
        words.append(
            [
                row["name"],
                _us(row["ns"]) if usable else "does not apply",
                _us(row["fixed"]) if usable else "-",
                _us(row["behind"]) if usable and row["behind"] else "-",
            ]
        )
        words[-1] += [row["reach"], row["about"]]
    titles = ("algorithm", "estimate", "of it fixed", "behind", "needs reach of", "what it does")
    print_table(titles, words, ["bold" if row is chosen else None for row in rows_in_order])


def _call(found: dict[str, Any]) -> str:
    """The call, and of what length; a barrier has none."""
    return found["op"] if found["op"] == "barrier" else f"{found['op']} of {found['bytes']} bytes"


def _us(ns: float) -> str:
    return f"{ns / 1000:.3g} us"
