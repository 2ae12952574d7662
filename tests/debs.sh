#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Build the Debian packages in a clean root of a release, and print the directory of that
# root: lintian is in it.
#
# usage: debs.sh RELEASE [DIR [VERSION [OPTION...]]]
#
#   RELEASE	debian-12 or debian-13
#   DIR		where the packages go, beside what dpkg-buildpackage writes there; without it,
#		the directory is printed and nothing built
#   VERSION	another one than that of the file VERSION, unless empty
#   OPTION	for dpkg-buildpackage
#
# Tests of one run of tests/run.sh, which names a directory of that run in $NEURON_RUN, share
# what the first of them has built.

set -eu -o pipefail
. "$(dirname "$0")/vm/lib.sh"
cd "$ROOT"

release=$1
mapfile -t packages < <(tests/deps.sh print build deb)
builder=$(tests/root.sh make "$release" "${packages[@]}" lintian)
if [ $# = 1 ]; then
	echo "$builder"
	exit
fi
mkdir -p "$2"
dir=$(readlink -f "$2")
version=${3:-}
shift $(($# < 3 ? $# : 3))

build() {
	local source=$1/neuron-open
	shift

	rm -rf "$source"
	copy_tree "$source"
	if [ -n "$version" ]; then
		echo "$version" >"$source/VERSION"
		sed -i "1s/(.*)/($version)/" "$source/debian/changelog"
	fi
	# shellcheck disable=SC2016	# expanded there
	tests/root.sh run "$builder" --bind "${source%/*}:/build" \
		bash -c 'cd /build/neuron-open && dpkg-buildpackage -us -uc "$@"' build "$@" >&2
	rm -rf "$source"
}

# once DIR: into a directory of the run, complete or not there.
once() {
	[ ! -e "$1" ] || return 0
	rm -rf "$1.new"
	mkdir -p "$1.new"
	build "$1.new"
	mv "$1.new" "$1"
}

if [ -n "${NEURON_RUN:-}" ] && [ -z "$version" ] && [ $# = 0 ]; then
	shared=$NEURON_RUN/debs-$release
	with_lock "${NEURON_RUN##*/}-debs-$release" once "$shared"
	cp "$shared"/* "$dir/"
else
	build "$dir" "$@"
fi
echo "$builder"
