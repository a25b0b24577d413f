"""`nearfield explain`: which algorithm a call would take, why, and what the others would cost."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from nearfield.model import ask, describe_network
from nearfield.tables import print_table
from nearfield.tune import stored_tuning, tuned_cell

PHASES = ("ns", "before", "network", "after")


def explain(op: str, ranks: int, size: int, machine: str, nodes: int = 1) -> dict[str, Any]:
    """The cell (see model.predict) with `rows`, one per algorithm, and `tuned`, the cell of the tuning file or None. If `nodes` is more
    than 1, `ranks` is the number of ranks on each node.

    Rows have name, applies, ns and about. On one node they also have fixed (ns that do not depend on the length) and reach; over nodes
    before, network and after (ns on the nodes, between them, and on the nodes again; of one chunk if the algorithm works in chunks). For
    messages, and operations made of them, _show_messages lists the keys. Raises ValueError if there is nothing to choose.
    """
    if nodes == 1 and ranks < 2 and op != "message":
        raise ValueError(f"no algorithm applies to {op} on one rank, which at most copies")
    cell, *rows = ask("explain", op, f"{nodes}x{ranks}" if nodes > 1 else str(ranks), str(size), machine)
    path = Path(os.environ.get("NEARFIELD_TUNED") or stored_tuning())
    return cell | {"rows": rows, "tuned": tuned_cell(op, ranks, size, path), "file": str(path)}


def _show_messages(found: dict[str, Any]) -> None:
    """Prints the explanation of a message, or of an operation that is made of messages.

    Rows have name, applies, from, to (bytes; None: any), needs and about. `publications` lists the ways to publish a record
    of several cache lines; these have name, possible, needs and about.
    """
    chosen = next(row for row in found["rows"] if row["name"] == found["chosen"])
    what = "a message" if found["op"] == "message" else f"{found['op']} with messages"
    print(f"{what} of {found['bytes']} bytes: {chosen['name']}")
    print(f"  {chosen['about']}")
    if found["op"] != "message":
        print(
            "  made of messages, one for each pair of ranks that exchanges data; each message chooses its own protocol"
        )
    if found["nodes"] > 1:
        whole = found["op"] != "message" and found["op"] not in ("alltoallv", "alltoallw")
        print(
            "  over several nodes the host serves it"
            if whole
            else "  between ranks of a node; between nodes the host serves it"
        )
    if found["chosen"] in ("direct", "calls"):
        print(
            "  if peers cannot map the arrays, the message goes through copy buffers; NEARFIELD_CHOOSE=trial tries the protocols that are possible"
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


def show(found: dict[str, Any]) -> None:
    """Prints the explanation."""
    if "made_of" in found:
        return _show_messages(found)
    nodes = "ranks_per_node" in found
    call = found["op"] if found["op"] == "barrier" else f"{found['op']} of {found['bytes']} bytes"
    where = (
        f"{found['nodes']} nodes of {found['ranks_per_node']} ranks" if nodes else f"{found['ranks']} ranks"
    )
    print(f"{call} on {where}: {found['chosen']}{', by the model' * nodes}")
    chosen = next((row for row in found["rows"] if row["name"] == found["chosen"]), None)
    if chosen is None:
        return print("  no algorithm over nodes applies; the host serves it")
    lines = (_why_over_nodes if nodes else _why)(found, chosen)
    print(*[f"  {line}" for line in (chosen["about"], *lines)], sep="\n")
    rows = sorted(found["rows"], key=lambda row: (not row["applies"], row["ns"] + row.get("behind", 0)))
    keys = PHASES if nodes else ("ns", "fixed", "behind")
    words = []
    for row in rows:
        usable = row["applies"] and (nodes or row["ns"] < 1e11)
        words.append([row["name"], *(_us(row[key]) if usable and row[key] else "-" for key in keys)])
        words[-1][1] = words[-1][1] if usable else "does not apply"
        words[-1] += [row["about"]] if nodes else [row["reach"], row["about"]]
    titles = (
        ("predicted", "on nodes", "network", "on nodes again")
        if nodes
        else ("estimate", "fixed part", "after the call", "needs reach of")
    )
    print_table(
        ("algorithm", *titles, "what it does"), words, ["bold" if row is chosen else None for row in rows]
    )


def _why_over_nodes(found: dict[str, Any], chosen: dict[str, Any]) -> list[str]:
    on_nodes = chosen["before"] + chosen["after"]
    if chosen["name"] == "pipelined" and found["chunks"] > 1:
        phases = f"each of {found['chunks']} chunks {_us(chosen['network'])} on the network while nodes work {_us(on_nodes)}"
    else:
        phases = f"{_us(chosen['network'])} of it on the network and {_us(on_nodes)} on the nodes"
    return [
        f"the lowest prediction: {_us(chosen['ns'])}, {phases}",
        describe_network(found["network"]),
        "NEARFIELD_CHOOSE=trial tries these and the host's own algorithm in a job's calls",
    ]


def _why(found: dict[str, Any], chosen: dict[str, Any]) -> list[str]:
    of_bytes = _us(chosen["ns"] - chosen["fixed"])
    lines = [
        f"the algorithm with the lowest estimate: {_us(chosen['ns'])}, of which {_us(chosen['fixed'])} for synchronizing and {of_bytes} for the bytes"
    ]
    if chosen["behind"]:
        lines.append(
            f"after the call the program spends {_us(chosen['behind'])} more when it writes to buffers that peers have read"
        )
    if chosen["reach"] != "no":
        lines.append(f"if peers cannot reach {chosen['reach']}: {found['staged']}")
    if len(found["promising"]) > 1:
        lines.append(f"NEARFIELD_CHOOSE=trial tries {', '.join(found['promising'])} in the program's calls")
    if tuned := found["tuned"]:
        taken = f"{tuned['algorithm']}, measured {tuned['us']:.3g} us ({found['file']})"
        lines.append(f"NEARFIELD_CHOOSE=file takes {taken}")
    return lines


def _us(ns: float) -> str:
    return f"{ns / 1000:.3g} us"
