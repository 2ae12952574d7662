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
