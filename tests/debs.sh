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

source=$dir/neuron-open
rm -rf "$source"
copy_tree "$source"
if [ -n "$version" ]; then
	echo "$version" >"$source/VERSION"
	sed -i "1s/(.*)/($version)/" "$source/debian/changelog"
fi
# shellcheck disable=SC2016	# expanded there
tests/root.sh run "$builder" --bind "$dir:/build" \
	bash -c 'cd /build/neuron-open && dpkg-buildpackage -us -uc "$@"' build "$@" >&2
rm -rf "$source"
echo "$builder"
