#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0-only
# First process of the User Mode Linux that runs the benchmark.
/bin/busybox mount -t proc proc /proc
/bin/busybox grep -m 1 '^model name' /proc/cpuinfo
. /arguments
/bin/busybox insmod /neuron_bench.ko out=/results.json tests="$tests" peers="$peers" seeds="$seeds"
echo "insmod: $?"
/bin/busybox poweroff -f
