#!/usr/bin/env bash
# The tests. For every change: what finds most in twenty minutes on two CPUs. `scripts/test.sh all`: everything. One
# mechanism decides what belongs where: the label `full` of CTest, the marker `full` of pytest (tests/conftest.py).
# Stages with arguments after `--` run alone: scripts/test.sh change -- lint release.
set -euo pipefail
cd "$(dirname "$0")/.."
tier=${1:-change}
[ "$tier" = all ] || [ "$tier" = change ] || { echo "usage: scripts/test.sh [change|all] [-- STAGE...]" >&2; exit 2; }
shift || true
[ "${1:-}" = -- ] && shift
only=" $* "

results=build/results
rm -rf $results
mkdir -p $results
# What CTest and pytest leave out for a change.
labels=() marks="not alone" marks_alone=alone examples=random
if [ "$tier" = change ]; then
  labels=(-LE full) marks="not alone and not full" marks_alone="alone and not full" examples=same
fi

# stage NAME COMMAND...: runs it, unless others are asked for, and notes how long it took. Bash does not end a function at its
# first failure while its status is looked at, so the steps of a stage are joined by &&.
stage() {
  local name=$1 begin=$SECONDS
  shift
  [ "$only" = "  " ] || [[ $only == *" $name "* ]] || return 0
  echo "== $name"
  "$@" || { echo "== $name failed after $((SECONDS - begin)) s"; exit 1; }
  echo "$name $((SECONDS - begin))" >> $results/stages
}

configured() { # preset
  [ build/$1/build.ninja -nt CMakePresets.json ] || cmake --preset $1 > /dev/null
}
engine_tests() { # preset
  ctest --test-dir build/$1 --output-on-failure --output-junit "$PWD/$results/ctest-$1.xml" -j 2 -Q ${labels[@]+"${labels[@]}"} || {
    ctest --test-dir build/$1 --rerun-failed --output-on-failure
    return 1
  }
}
pytests() { # name, arguments of pytest
  .venv/bin/python -m pytest --junitxml $results/pytest-$1.xml -q --hypothesis-profile $examples "${@:2}" || [ $? -eq 5 ] # nothing to run
}

release() {
  configured release && ninja -C build/release --quiet all tests
}
sanitized() { # preset
  configured $1 && ninja -C build/$1 --quiet && engine_tests $1
}
undefined() {
  configured ubsan && ninja -C build/ubsan --quiet heap_test || return 1
  build/ubsan/bin/heap_test > build/ubsan/heap_test.log || { cat build/ubsan/heap_test.log; return 1; }
}
# Emulation on x86 shows that the code for this processor computes right, not that its weaker memory is provided for:
# for that there are the models (tests/engine/model), whose memory is the language's.
aarch64() {
  local programs=per_change
  [ "$tier" = change ] || programs=all
  configured aarch64 && ninja -C build/aarch64 --quiet $programs && engine_tests aarch64
}
# Every file by itself: what it forgets to include shows.
with_clang() {
  cmake --preset release -B build/clang -DNEARFIELD_UNITY=OFF > /dev/null && python3 scripts/clang.py build/clang
}

stage setup bash scripts/setup.sh tests
stage lint bash scripts/lint.sh
stage release release
# Those whose sources have changed; everything else is as the record says (tests/engine/model/proofs.json).
[ "$tier" = all ] || stage proofs python3 scripts/proofs.py --rerun
stage engine engine_tests release
stage asan sanitized asan
stage tsan sanitized tsan
stage ubsan undefined
stage aarch64 aarch64
[ "$tier" = change ] || stage clang with_clang
# Two at a time: half of a job's time is that of its launcher, which waits.
stage mpi pytests mpi tests --ignore tests/guest --ignore tests/nodes -m "$marks" -n 2 --dist loadgroup
stage alone pytests alone tests/mpi tests/command -m "$marks_alone"
# Ranks of pretended nodes spin in their hosts, and networks are measured: one at a time.
stage nodes pytests nodes tests/nodes -m "$marks"
# For a change no stage may grow unnoticed.
budget=()
[ "$tier" = all ] || budget=(--budget)
python3 scripts/durations.py $results ${budget[@]+"${budget[@]}"}
