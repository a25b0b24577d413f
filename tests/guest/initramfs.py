"""The guest's first file system: busybox, modules of the kernel, and init.sh, as an archive that the kernel unpacks."""

from __future__ import annotations

import stat
from collections.abc import Iterable
from pathlib import Path

from tests.guest.packages import Parts

INIT = Path(__file__).with_name("init.sh")


def pack(parts: Parts) -> bytes:
    """The archive for `parts`."""
    files = [("init", 0o755, INIT.read_bytes()), ("bin/busybox", 0o755, parts.busybox.read_bytes())]
    files += [(f"modules/{path.name}", 0o644, path.read_bytes()) for path in parts.modules]
    directories = ("bin", "modules", "proc", "sys", "dev", "host", "over", "root")
    entries = [(name, stat.S_IFDIR | 0o755, b"") for name in directories]
    entries += [(name, stat.S_IFREG | mode, data) for name, mode, data in files]
    # The kernel starts /init by the interpreter that its first line names.
    entries.append(("bin/sh", stat.S_IFLNK | 0o777, b"busybox"))
    return archive(entries)


def archive(entries: Iterable[tuple[str, int, bytes]]) -> bytes:
    """A cpio archive in the "new ASCII" form of (name, mode, data); directories before what they hold."""
    parts = []
    for number, (name, mode, data) in enumerate([*entries, ("TRAILER!!!", 0, b"")], start=1):
        # inode, mode, user, group, links, time, size, device (2), device of a special file (2), length of name, checksum
        fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name) + 1, 0)
        header = b"070701" + b"".join(b"%08X" % field for field in fields)
        parts += [_padded(header + name.encode() + b"\0"), _padded(data)]
    return b"".join(parts)


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)
