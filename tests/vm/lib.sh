# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# Shared by the scripts of the test rig: where things are, and messages.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
CACHE=${NEURON_CACHE:-$HOME/.cache/neuron-driver}
JOBS=${JOBS:-$(nproc)}
export ROOT CACHE JOBS

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

# archive LABEL: the address of a Debian archive that this machine uses. Packages of
# other releases come from there, too.
archive() {
	apt-get indextargets --format '$(REPO_URI) $(ORIGIN) $(LABEL)' |
		awk -v label="$1" '$2 == "Debian" && $3 == label { print $1; exit }'
}
