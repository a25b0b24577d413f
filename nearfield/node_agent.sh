#!/bin/sh
# Stands in for ssh between the pretended nodes of nearfield/nodes.py, which copies it into a directory with a file per
# node that says which namespaces the node is. Called as launchers call ssh: AGENT [OPTIONS] NODE COMMAND...
# Like ssh it hands over none of the caller's environment and joins the words of the command for a shell.
while [ "${1#-}" != "$1" ]; do
  case $1 in -[lpoi]) shift ;; esac # options with a value
  shift
done
node=${1#*@}
shift
spaces=$(cat "$(dirname "$0")/$node") || { echo "there is no node $node" >&2; exit 255; }
exec nsenter $spaces --wd=/ env -i PATH="$PATH" HOME="$HOME" USER="${USER:-root}" SHELL=/bin/sh sh -c "$*"
