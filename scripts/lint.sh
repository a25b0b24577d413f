#!/usr/bin/env bash
# Formatting and lint, as CI enforces them.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p build
git ls-files '*.cpp' '*.hpp' 'examples/*.c' 'examples/*.h' | xargs .venv/bin/clang-format --dry-run -Werror
.venv/bin/ruff check -q .
.venv/bin/ruff format -q --check .
# The command runs on Python 3.9 and later.
.venv/bin/vermin -q -t=3.9- --no-tips nearfield > build/vermin.log || { cat build/vermin.log; exit 1; }
.venv/bin/python scripts/reference.py --check
.venv/bin/python bench/pages.py --check
.venv/bin/python scripts/shell.py --check
.venv/bin/python scripts/arrows.py
.venv/bin/python scripts/sync_pairs.py
