#!/usr/bin/env bash
# Formatting and lint, as CI enforces them.
set -euo pipefail
cd "$(dirname "$0")/.."
git ls-files '*.cpp' '*.hpp' 'examples/*.c' 'examples/*.h' | xargs .venv/bin/clang-format --dry-run -Werror
.venv/bin/ruff check -q .
.venv/bin/ruff format -q --check .
.venv/bin/python scripts/calls.py --check
.venv/bin/python scripts/statistics_table.py --check
.venv/bin/python scripts/shell.py --check
.venv/bin/python scripts/arrows.py
.venv/bin/python scripts/sync_pairs.py
