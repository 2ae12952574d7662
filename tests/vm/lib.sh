# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Shared by the scripts of the test rig: where things are, and messages.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
CACHE=${NEURON_CACHE:-$HOME/.cache/neuron-driver}
JOBS=${JOBS:-$(nproc)}
export ROOT CACHE JOBS

# The same text is compiled by the same compiler once, wherever the tree is: a run of the tests
# compiles some of it for several steps, and the next run all of it.
if [ -d /usr/lib/ccache ]; then
	[[ :$PATH: == *:/usr/lib/ccache:* ]] || PATH=/usr/lib/ccache:$PATH
	export PATH CCACHE_DIR=$CACHE/ccache CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=$ROOT
fi

die() {
	echo "${0##*/}: $*" >&2
	exit 1
}

say() {
	echo "# $*" >&2
}

# Run a command with its output in a log file; show the tail if it fails.
logged() {
	local log=$1

	shift
	if ! "$@" >>"$log" 2>&1; then
		echo "failed: $*; last lines of $log:" >&2
		tail -n 40 "$log" >&2
		return 1
	fi
}

# One run at a time: with_lock NAME COMMAND...
with_lock() {
	local name=$1 fd

	shift
	mkdir -p "$CACHE/lock"
	exec {fd}>"$CACHE/lock/$name"
	if ! flock -n "$fd"; then
		say "waiting for another run that prepares $name"
		flock "$fd"
	fi
	"$@"
	exec {fd}>&-
}

# alone NAME PROGRAM...: the same for a program, whose status it has; what that starts in the
# background does not get the lock.
alone() {
	mkdir -p "$CACHE/lock"
	flock -o "$CACHE/lock/$1" "${@:2}"
}

# make_here DIR ARGUMENT...: make in a directory of this tree, which another step may want, too.
make_here() {
	alone "make-$(echo "$ROOT/$1" | sha256sum | cut -c1-12)" make -s -C "$ROOT/$1" "${@:2}"
}

# suite_of RELEASE: the name that Debian's archive has for debian-12 or debian-13.
suite_of() {
	case $1 in
	debian-12)	echo bookworm ;;
	debian-13)	echo trixie ;;
	*)		die "unknown release $1" ;;
	esac
}

# copy_tree DIR: this tree, with what is not committed yet, and without what was built.
copy_tree() {
	mkdir -p "$1"
	git -C "$ROOT" ls-files -z --cached --others --exclude-standard |
		tar -C "$ROOT" -c --null --ignore-failed-read -T - | tar -x -C "$1"
}

# archive LABEL: the address of a Debian archive that this machine uses. Packages of
# other releases come from there, too.
archive() {
	apt-get indextargets --format '$(REPO_URI) $(ORIGIN) $(LABEL)' |
		awk -v label="$1" '$2 == "Debian" && $3 == label { print $1; exit }'
}

# The release whose backports have what this one does not.
export DEBIAN_NEXT=trixie

# next_release DIR SUITE...: options for apt in apt_conf, which make it use the archive that
# this machine already uses, with other suites, in a configuration of our own below DIR.
next_release() {
	local dir=$1 uri suite

	shift
	mkdir -p "$dir/parts" "$dir/lists/partial" "$dir/cache/archives/partial"
	for suite; do
		uri=$(archive Debian)
		[[ $suite != *-security ]] || uri=$(archive Debian-Security)
		[ -n "$uri" ] || die "no archive for $suite among this machine's package sources"
		echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $uri $suite main"
	done >"$dir/sources.list"
	: >"$dir/status"
	# shellcheck disable=SC2034	# the caller's
	apt_conf=(-o "Dir::Etc::sourcelist=$dir/sources.list"
		  -o "Dir::Etc::sourceparts=$dir/parts" -o "Dir::Etc::preferencesparts=$dir/parts"
		  -o "Dir::State::lists=$dir/lists"
		  -o "Dir::State::status=$dir/status"
		  -o "Dir::Cache=$dir/cache")
}
