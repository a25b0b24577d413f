"""The tables of MPI's functions that scripts write out of others are what these scripts write."""

import re
import subprocess
import sys

from tests.mpi.jobs import ROOT

ROWS = (ROOT / "mpi/functions.def").read_text()


def test_the_table_is_what_the_standard_says() -> None:
    """And every function that a header of a host declares has a place in it, or never waits for another rank."""
    words = [sys.executable, str(ROOT / "scripts/functions.py"), "--check"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_an_access_to_a_file_by_an_own_pointer_awaits_no_other_rank() -> None:
    """The progress thread serves nobody whose rank is in one (HostScope): no other rank needs it before the call is over."""
    alone = set(re.findall(r"^BLOCKING\((\w+), .*\.meets_nobody = true", ROWS, re.MULTILINE))
    plain = {"File_read", "File_write", "File_read_at", "File_write_at"}
    assert alone == {"File_seek", *plain, *(f"{name}_c" for name in plain)}


def test_what_moves_data_in_the_host_is_known_by_its_buffer() -> None:
    rows = re.findall(r"^BLOCKING(?:_EXTENSION)?\((\w+), (.*)\)$", ROWS, re.MULTILINE)
    moving = {name for name, row in rows if ".moves_data = true" in row}
    assert moving == {name for name, _ in rows if re.search(r"File_(read|write)|_(recv|send)", name)}
