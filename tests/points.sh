# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154	# label and log are the caller's
#
# Shared by tests that are scripts: points are counted in $passed and $failed. $label is what
# they are about, and $log has what the last command printed.

passed=0 failed=0

# result STATUS TEXT
result() {
	if [ "$1" = 0 ]; then
		passed=$((passed + 1))
		echo "ok - $label: $2"
	else
		failed=$((failed + 1))
		echo "not ok - $label: $2"
		tail -n 60 "$log" | sed 's/^/# /'
	fi
}

# point TEXT COMMAND...
point() {
	local what=$1 status=0

	shift
	"$@" >"$log" 2>&1 </dev/null || status=$?
	result $status "$what"
}
