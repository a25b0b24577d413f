#!/usr/bin/env bash
# Everything that CI runs.
set -euo pipefail
cd "$(dirname "$0")/.."
stage() { printf '== %s (%d s)\n' "$1" "$SECONDS"; }

stage "setup"
bash scripts/setup.sh tests
stage "lint"
bash scripts/lint.sh
stage "build"
[ -e build/release/build.ninja ] || cmake --preset release > /dev/null
ninja -C build/release --quiet
stage "clang"
python3 scripts/clang.py build/release
for sanitizer in asan tsan; do
  stage "engine tests, $sanitizer"
  [ -e build/$sanitizer/build.ninja ] || cmake --preset $sanitizer > /dev/null
  ninja -C build/$sanitizer --quiet
  ctest --test-dir build/$sanitizer --output-on-failure -j 2 -Q || { ctest --test-dir build/$sanitizer --rerun-failed --output-on-failure; exit 1; }
done
stage "heap tests, undefined behaviour"
[ -e build/ubsan/build.ninja ] || cmake --preset ubsan > /dev/null
ninja -C build/ubsan --quiet heap_test
build/ubsan/bin/heap_test > build/ubsan/heap_test.log || { cat build/ubsan/heap_test.log; exit 1; }
stage "engine tests, release"
ctest --test-dir build/release --output-on-failure -j 2
stage "engine tests, aarch64 (emulated)"
[ -e build/aarch64/build.ninja ] || cmake --preset aarch64 > /dev/null
ninja -C build/aarch64 --quiet
ctest --test-dir build/aarch64 --output-on-failure -j 2
stage "tests under real MPIs"
# Not in the emulated guest (make test-guest), which takes minutes of its own.
.venv/bin/python -m pytest tests --ignore tests/guest
stage "done"
