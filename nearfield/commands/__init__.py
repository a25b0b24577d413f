"""The subcommands, by Typer: a module each, which registers it.

A module takes what it needs inside its function: `nearfield --help` imports all of them, and nothing else. Annotations are not
postponed: Typer could not read them on Python 3.9.
"""

from __future__ import annotations

from importlib import import_module

from nearfield.commands.registry import app

# In the order of --help.
NAMES = (
    "run",
    "exec",
    "env",
    "compare",
    "stats",
    "check",
    "info",
    "bench",
    "model",
    "explain",
    "plan",
    "tune",
    "report",
    "demo",
    "place",
    "survey",
)
for name in NAMES:
    import_module(f"nearfield.commands.{name}")

__all__ = ["NAMES", "app"]
