#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0-only
#
# shellcheck shell=dash
# First process of the User Mode Linux that runs the benchmark.
/bin/busybox mount -t proc proc /proc
/bin/busybox grep -m 1 '^model name' /proc/cpuinfo
tests='' peers='' seeds=1 recorded='' quick=0 draw=1
# shellcheck disable=SC1091
. /arguments
/bin/busybox insmod /neuron_bench.ko out=/results.json tests="$tests" peers="$peers" seeds="$seeds" \
	recorded="$recorded" quick="$quick" draw="$draw"
echo "insmod: $?"
/bin/busybox poweroff -f
