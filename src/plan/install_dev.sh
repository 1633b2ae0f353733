#!/bin/sh
# Make the directory that boxes see as /dev: the points on which devices are mounted, and the links.
#
#	install_dev.sh DIRECTORY	(below $DESTDIR, as meson sets it)
set -eu
dir=${DESTDIR:-}$1
rm -rf "$dir"
mkdir -p "$dir/pts" "$dir/shm"
ln -s /proc/self/fd "$dir/fd"
ln -s /proc/self/fd/0 "$dir/stdin"
ln -s /proc/self/fd/1 "$dir/stdout"
ln -s /proc/self/fd/2 "$dir/stderr"
ln -s pts/ptmx "$dir/ptmx"
ln -s urandom "$dir/random"
# The last one is what agentbox looks for.
for node in full null tty zero urandom; do
	: >"$dir/$node"
done
chmod 755 "$dir" "$dir/pts" "$dir/shm"
chmod 644 "$dir/full" "$dir/null" "$dir/tty" "$dir/zero" "$dir/urandom"
