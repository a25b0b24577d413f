#!/bin/sh
# Stands in for ssh between the pretended nodes of tests/nodes/bed.py, which copies it into a directory with a file per
# node that says which namespaces the node is, and its CPUs. Called as launchers call ssh: AGENT [OPTIONS] NODE COMMAND...
# Like ssh it hands over none of the caller's environment and joins the words of the command for a shell.
while [ "${1#-}" != "$1" ]; do
  case $1 in -[lpoi]) shift ;; esac # options with a value
  shift
done
node=${1#*@}
shift
{ read -r spaces; read -r cpus; } < "$(dirname "$0")/$node" || [ "$cpus" ] || exit 255
# Launchers keep files by process number, which processes on nodes apart share.
own="$(dirname "$0")/tmp-$node"
mkdir -p "$own"
exec nsenter $spaces --wd=/ taskset -c "$cpus" \
  env -i PATH="$PATH" HOME="$HOME" USER="${USER:-root}" SHELL=/bin/sh TMPDIR="$own" sh -c "$*"
