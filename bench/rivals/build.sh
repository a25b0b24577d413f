#!/bin/bash
# Builds the strongest MPIs to compare with, from sources that are there: nothing is fetched.
#
#   bench/rivals/build.sh --prefix DIR [--jobs N] [--configure-only] NAME=SOURCE...
#
#   mpich=SOURCE      ch4:ofi, MPICH's own shared memory, with XPMEM where it is given and CMA where this version has it
#   openmpi=SOURCE    pml ucx where UCX is given, smsc cma and xpmem, coll xhc and acoll where this version has them
#   ucx=SOURCE        for Open MPI; or the prefix of an installed one (include/ucp/api/ucp.h)
#   xpmem=PREFIX      an installed libxpmem (xpmem.h, libxpmem.so), with the module loaded when it is measured
#
# SOURCE is a tarball, a directory that has been unpacked, or a Debian source package (.dsc; needs dpkg-source). Each is
# installed below DIR/NAME; DIR/NAME.flags has source, configure line and compiler, for the table's foot. What a build
# has and lacks of what is wanted is printed. Measured they are as hosts:
#
#   NEARFIELD_RIVALS=DIR .venv/bin/nearfield bench --hosts built-mpich,built-openmpi
set -euo pipefail

fail() {
  echo "build.sh: $*" >&2
  exit 2
}

prefix="" jobs=$(nproc) configure_only=""
declare -A source_of=()
while (($#)); do
  case $1 in
    --prefix) prefix=${2:?--prefix needs a directory}; shift ;;
    --jobs) jobs=${2:?--jobs needs a number}; shift ;;
    --configure-only) configure_only=yes ;;
    mpich=* | openmpi=* | ucx=* | xpmem=*) source_of[${1%%=*}]=${1#*=} ;;
    *) fail "$1 is neither an option (--prefix, --jobs, --configure-only) nor mpich=, openmpi=, ucx= or xpmem=" ;;
  esac
  shift
done
[[ $prefix ]] || fail "--prefix DIR is missing"
((${#source_of[@]})) || fail "name what to build: mpich=SOURCE, openmpi=SOURCE, ucx=SOURCE"
mkdir -p "$prefix/src"
prefix=$(realpath "$prefix")
flags=(CC="${CC:-gcc}" CXX="${CXX:-g++}" CFLAGS="${CFLAGS:--O3 -DNDEBUG}" CXXFLAGS="${CXXFLAGS:--O3 -DNDEBUG}")

# Unpacks a source below the prefix, once; prints where it is.
unpack() {
  local name=$1 from=$2 to=$prefix/src/$1
  [[ -e $from ]] || fail "there is no $from"
  if [[ -d $from ]]; then
    realpath "$from"
    return
  fi
  if [[ ! -d $to ]]; then
    mkdir "$to.part"
    case $from in
      *.dsc) rmdir "$to.part" && dpkg-source --no-check -x "$from" "$to.part" >&2 ;;
      *) tar -xf "$from" -C "$to.part" --strip-components=1 ;;
    esac
    mv "$to.part" "$to"
  fi
  echo "$to"
}

# Configures, builds and installs; the rest of the words are options of configure.
build() {
  local name=$1 from where
  shift
  from=$(unpack "$name" "${source_of[$name]}")
  where=$prefix/build/$name
  [[ -x $from/configure ]] || fail "$from has no configure: take a release, not a checkout"
  mkdir -p "$where"
  (
    cd "$where"
    "$from/configure" --prefix="$prefix/$name" "$@" "${flags[@]}" > configure.log 2>&1 ||
      fail "configure of $name failed; see $where/configure.log"
    if [[ ! $configure_only ]]; then
      # Packing of datatypes, of which -O3 takes 20 seconds a file, -O1 five.
      if [[ -d modules/yaksa ]]; then
        make -j "$jobs" -C modules/yaksa CFLAGS="-O0 -DNDEBUG" > yaksa.log 2>&1 || fail "make failed; see $where/yaksa.log"
      fi
      make -j "$jobs" > make.log 2>&1 || fail "make of $name failed; see $where/make.log"
      make install > install.log 2>&1 || fail "install of $name failed; see $where/install.log"
    fi
  )
  {
    echo "$name from $(basename "${source_of[$name]}")"
    echo "configure $* ${flags[*]}$([[ -d $where/modules/yaksa ]] && echo '; yaksa -O0')"
    "${CC:-gcc}" --version | head -1
  } > "$prefix/$name.flags"
  echo "$name: $([[ $configure_only ]] && echo configured || echo "installed in $prefix/$name")"
}

# Whether a build's log or list has a word; a line of the report.
report() {
  local what=$1 pattern=$2
  shift 2
  if grep -qiE "$pattern" "$@" 2> /dev/null; then echo "  with $what"; else echo "  WITHOUT $what"; fi
}

with_xpmem=()
if [[ ${source_of[xpmem]:-} ]]; then
  [[ -e ${source_of[xpmem]}/include/xpmem.h ]] || fail "${source_of[xpmem]} has no include/xpmem.h"
  with_xpmem=(--with-xpmem="${source_of[xpmem]}")
fi

ucx=""
if [[ -e ${source_of[ucx]:-}/include/ucp/api/ucp.h ]]; then
  ucx=$(realpath "${source_of[ucx]}")
elif [[ ${source_of[ucx]:-} ]]; then
  ucx=$prefix/ucx
  build ucx --enable-optimizations --disable-logging --disable-debug --disable-assertions --disable-params-check \
    --enable-mt "${with_xpmem[@]}"
fi

if [[ ${source_of[mpich]:-} ]]; then
  build mpich --with-device=ch4:ofi --with-libfabric=embedded --enable-fast=all,O3 --disable-fortran --disable-doc \
    "${with_xpmem[@]}"
  log=$prefix/build/mpich/configure.log
  report "XPMEM" "checking for xpmem_make in -lxpmem\.\.\. yes|xpmem.*yes" "$log"
  report "CMA" "process_vm_readv\.\.\. yes|cma.*yes" "$log"
fi

if [[ ${source_of[openmpi]:-} ]]; then
  with_ucx=(--without-ucx)
  # Of what is only configured nothing is installed.
  if [[ $ucx && ! ($configure_only && $ucx == "$prefix/ucx") ]]; then
    with_ucx=(--with-ucx="$ucx")
    library=$(find "$ucx"/lib* -name libucp.so 2> /dev/null | head -1 || true)  # Debian's is in a folder of the machine's
    if [[ $library ]]; then with_ucx+=(--with-ucx-libdir="$(dirname "$library")"); fi
  fi
  build openmpi --enable-mpi-fortran=no --disable-oshmem --disable-debug --with-hwloc=internal --with-libevent=internal \
    --with-pmix=internal --with-prrte=internal "${with_ucx[@]}" "${with_xpmem[@]}"
  log=$prefix/build/openmpi/configure.log
  for component in smsc:cma smsc:xpmem coll:xhc coll:acoll pml:ucx; do
    report "$component" "MCA component $component can compile\.\.\. yes" "$log"
  done
fi
