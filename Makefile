# The front door. `make demo` and `make test` install what is missing, build and run.
.PHONY: demo test test-all test-guest test-torch build setup bench docs lint format clean
.DEFAULT_GOAL := build

setup:
	@bash scripts/setup.sh

configured = [ build/release/build.ninja -nt CMakePresets.json ] || cmake --preset release > /dev/null

build: setup
	@$(configured)
	@ninja -C build/release --quiet

demo:
	@bash scripts/setup.sh demo
	@$(configured)
	@NINJA_STATUS='compiling %p, %es  ' ninja -C build/release nearfield-demo
	.venv/bin/nearfield demo --out report.html

bench: build
	.venv/bin/nearfield bench --json bench.json --report bench.html

test:
	@bash scripts/test.sh change

test-all:
	@bash scripts/test.sh all

# In an emulated machine with HBM nodes (docs/dev/testing.md).
test-guest: build
	.venv/bin/python -m pytest tests/guest

# With a Python that has PyTorch (docs/dev/testing.md).
test-torch: build
	.venv/bin/python -m pytest tests/torch

# Generated pages, tables, plots, man page and completions.
docs:
	.venv/bin/python scripts/reference.py
	.venv/bin/python scripts/arrows.py --svg
	.venv/bin/python scripts/shell.py
	.venv/bin/python bench/pages.py

lint:
	@bash scripts/lint.sh

format:
	@git ls-files '*.cpp' '*.hpp' 'examples/*.c' 'examples/*.h' | xargs .venv/bin/clang-format -i
	@.venv/bin/ruff format -q . && .venv/bin/ruff check -q --fix .

clean:
	rm -rf build
