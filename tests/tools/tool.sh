# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154	# bad and tool are the callers'
#
# Shared by tests of one tool that was built (make lib), $tool. They are at the top of the
# tree then, write below $dir, and end with status $bad.

cd "$(dirname "$0")/../.." || exit 1
export LD_LIBRARY_PATH=libneuron/build
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
out=$dir/out
bad=0

# check TEXT COMMANDS
check() {
	if eval "$2"; then
		echo "ok - $1"
	else
		echo "not ok - $1"
		sed 's/^/# /' "$out"
		bad=1
	fi
}

# status WANT ARGUMENT...: what it printed is in $out
status() {
	local want=$1

	shift
	timeout 10 "$tool" "$@" >"$out" 2>&1
	[ $? = "$want" ]
}
