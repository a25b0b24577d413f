"""The archive of a survey: one ZIP file with what may leave the machine, and nothing else.

    README.txt      what it contains
    survey.json     {"format", "version", "minutes", "used", "machine", "places", "hosts", "planned"}
    steps.json      {name of a step: {"kind", ..., "rows"}}

Of what was measured, only keys that are named here go there, with numbers or words out of Nearfield's own tables. Texts that
the system or an MPI has written (the CPU's name, versions) are looked through for names of this machine, of its user and for paths.
"""

from __future__ import annotations

import contextlib
import getpass
import json
import os
import re
import socket
import zipfile
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

Record = dict[str, Any]
FORMAT = 2
LEFT_OUT = "(left out)"
CONTENT = """What `nearfield survey` has measured on one machine.

It contains: the CPU's model, family and number, whether it is virtual, how many CPUs, cores, caches and packages there are and
which belong together; sizes of caches, memory and huge pages; the kernel's version number; names and versions of the MPIs;
what reaches other processes' memory; nanoseconds of cache lines between CPUs; figures of the machine; microseconds of calls,
by operation, length, placement, MPI and algorithm; what Nearfield chose; which measurements failed or did not fit into the time.

It does not contain: names of the machine, of users or of programs; addresses; paths; environment variables; what jobs have
printed; times of day. All of it is text: survey.json, steps.json.
"""
# Of rows of `nearfield bench` and cells of nearfield/choices.py.
OF_ROWS = (
    *("op", "bytes", "ranks", "host", "mode", "algorithm", "buffers", "state", "line_ns", "heap", "protocol"),
    *("median", "mean", "lower", "upper", "iterations", "model", "chosen", "best", "model_ratio", "ratio"),
    *("us", "forced_us", "estimated_us", "trials", "first", "second", "ns"),
)
OF_STEPS = ("kind", "placement", "ranks", "op", "host", "seconds", "failed", "rows", "found")
ADDRESS = re.compile(
    r"""(^|[\s:=(<"'])~?/\w|\w@\w|\b(\d{1,3}\.){3}\d{1,3}\b|\b[0-9a-f]{2}(:[0-9a-f]{2}){5}\b""", re.IGNORECASE
)
OF_MACHINE = ("model", "family", "model_number", "virtual", "cpus", "caches", "kernel")


def only(record: Record, keys: Collection[str]) -> Record:
    """The keys that are named."""
    return {key: value for key, value in record.items() if key in keys}


def about_machine(machine: Record) -> Record:
    """What nearfield/machine.py says, as it may leave: of the kernel its number."""
    number = re.search(r"\d+\.\d+(\.\d+)?", machine.get("kernel", ""))
    return without_names(only(machine, OF_MACHINE) | {"kernel": number[0] if number else ""})


def about_probe(found: Record) -> Record:
    """What nearfield-probe says, as it may leave: no names of files, nor what depends on settings."""
    kept = only(found, ("session_groups", "dev_shm_bytes"))
    kept["cpus"] = only(found["cpus"], ("quota", "available"))
    kept["topology"] = only(found["topology"], ("packages", "cores", "l1d", "l2", "l3", "l3_groups"))
    kept["pages"] = only(found["pages"], ("transparent", "shared", "collapse"))
    kept["reach"] = [only(way, ("name", "works")) for way in found["reach"]]
    nodes = found["placement"].get("nodes", [])
    kept["memory"] = [only(node, ("node", "bytes", "cpus", "bandwidth", "latency")) for node in nodes]
    kept["figures"] = [
        only(row, ("name", "value", "meaning"))
        for row in found["machine"]["figures"]
        if not row["name"].endswith("_hour")
    ]
    return kept


def about_step(step: Record) -> Record:
    """A step's record, as it may leave."""
    kept = only(step, OF_STEPS)
    if "rows" in kept:
        kept["rows"] = [only(row, OF_ROWS) for row in kept["rows"]]
    return kept


def names_here() -> list[str]:
    """What would tell whose machine this is, in small letters."""
    found = {socket.gethostname(), socket.gethostname().split(".")[0], os.uname().nodename, Path.home().name}
    with contextlib.suppress(KeyError, OSError):  # a user without a name
        found.add(getpass.getuser())
    return sorted(name.lower() for name in found if name)


def without_names(value: Any, names: Iterable[str] | None = None) -> Any:
    """The same, with (left out) for each text that has a path, an address or one of the names as a word; texts only, not keys."""
    found = names_here() if names is None else list(names)
    if isinstance(value, dict):
        return {key: without_names(each, found) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [without_names(each, found) for each in value]
    if isinstance(value, str) and tells(value, found):
        return LEFT_OUT
    return value


def tells(text: str, names: Iterable[str]) -> bool:
    """Whether a text has a path, an address of mail or network, or one of the names as a word."""
    if ADDRESS.search(text):
        return True
    return any(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.I) for name in names)


def write(path: Path, survey: Record, steps: dict[str, Record]) -> None:
    """Writes the archive at once: whoever reads meanwhile finds the old one or the new one."""
    survey = survey | {"hosts": without_names(survey["hosts"])}
    content = {
        "README.txt": CONTENT,
        "survey.json": json.dumps(survey, indent=1),
        "steps.json": json.dumps({name: about_step(step) for name, step in steps.items()}, indent=1),
    }
    beside = path.with_suffix(".part")
    with zipfile.ZipFile(beside, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in content.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), text, zipfile.ZIP_DEFLATED)
    beside.replace(path)


def read(path: Path) -> Record:
    """A survey with its "steps". Raises ValueError where the file is none."""
    try:
        with zipfile.ZipFile(path) as archive:
            survey = json.loads(archive.read("survey.json"))
            survey["steps"] = json.loads(archive.read("steps.json"))
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}") from None
    except (KeyError, TypeError, ValueError, zipfile.BadZipFile):
        raise ValueError(f"{path} was not written by `nearfield survey`") from None
    if survey.get("format") != FORMAT:
        raise ValueError(f"{path} is of another version of `nearfield survey`: format {survey.get('format')}")
    return survey
