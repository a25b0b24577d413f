#!/usr/bin/env bash
# Everything that CI runs.
set -euo pipefail
cd "$(dirname "$0")/.."
stage() { printf '== %s (%d s)\n' "$1" "$SECONDS"; }

# In the time that tests leave over: what depends on no time of day. Its log comes at the end.
beside_the_tests() {
  set -euo pipefail
  # A session is a scheduling group, among which `nice` does not count; members of one group that is as heavy as the tests'
  # would take half of the CPUs from tests whose processes hand them on to each other thousands of times.
  echo 12 > /proc/self/autogroup 2> /dev/null || true
  stage "clang"
  python3 scripts/clang.py build/release
  stage "models"
  model() { GTEST_TOTAL_SHARDS=4 GTEST_SHARD_INDEX=$1 timeout 3000 build/release/bin/model_test; }
  export -f model
  seq 0 3 | xargs -P 2 -I{} bash -c 'model {}'
  stage "engine tests, aarch64 (emulated)"
  [ -e build/aarch64/build.ninja ] || cmake --preset aarch64 > /dev/null
  ninja -C build/aarch64 --quiet
  # Not beside those built for this processor: more ranks than CPUs on both sides give way to each other at every wait.
  until [ -e build/engine-tests-done ]; do sleep 2; done
  ctest --test-dir build/aarch64 --output-on-failure -j 2
}
export -f stage beside_the_tests
aside() {
  rm -f build/engine-tests-done
  setsid nice -n 12 bash -c beside_the_tests > build/beside.log 2>&1 &
  beside=$!
  trap 'kill -- -$beside 2> /dev/null || true' EXIT
}

stage "setup"
bash scripts/setup.sh tests
stage "lint"
bash scripts/lint.sh
stage "build"
[ -e build/release/build.ninja ] || cmake --preset release > /dev/null
ninja -C build/release --quiet
aside
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
ctest --test-dir build/release --output-on-failure -j 2 -E model_test
touch build/engine-tests-done
stage "tests under real MPIs"
# Not in the emulated guest (make test-guest), which takes minutes of its own. Two at a time: half of a job's time is that
# of its launcher, which waits. Ranks of pretended nodes spin in their hosts, and networks are measured: those come last.
.venv/bin/python -m pytest tests --ignore tests/guest --ignore tests/nodes -m "not alone" -n 2 --dist worksteal
stage "what has run beside them"
wait "$beside" || { cat build/beside.log; exit 1; }
trap - EXIT
grep "^==" build/beside.log
stage "tests that want the machine for themselves"
.venv/bin/python -m pytest tests/mpi -m alone
.venv/bin/python -m pytest tests/nodes
stage "done"
