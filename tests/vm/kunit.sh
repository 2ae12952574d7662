#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Guest side of the KUnit run: suites run when their module is loaded and report
# in the kernel log. What stands there is brought here as one point for each case,
# and each suite is held to its plan.

exec 2>&1
dmesg -c >/tmp/before
if ! modprobe neuron_kunit; then
	echo "not ok - load neuron_kunit"
	exit 1
fi
rmmod neuron_kunit || echo "not ok - unload neuron_kunit"

dmesg -c | sed 's/^\[ *[0-9.]*\] //' | awk '
	/^ +# Subtest: / && match($0, /^ +/) && RLENGTH == 4 {
		sub(/^ *# Subtest: /, "")
		suite = $0
		cases = 0
		planned = -1
		suites++
	}
	/^    1\.\./	{ sub(/^ *1\.\./, ""); planned = $1 + 0 }
	/^    (ok|not ok) / {
		good = /^    ok /
		sub(/^ *(not )?ok [0-9]+ /, "")
		print (good ? "ok - " : "not ok - ") suite ": " $0
		cases++
		next
	}
	/^(ok|not ok) [0-9]+ / && suite != "" {
		if (planned != cases)
			print "not ok - " suite ": " planned " cases planned, " cases " reported"
		else if (/^not ok/)
			print "not ok - " suite
		suite = ""
		next
	}
	/# .*: (EXPECTATION|ASSERTION) FAILED|^ +(Expected|#)|seed/ { print "#" $0 }
	END {
		if (suite != "")
			print "not ok - " suite " did not end"
		if (!suites)
			print "not ok - no suites in the kernel log"
	}'
