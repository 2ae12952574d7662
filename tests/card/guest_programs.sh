#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# From now on queues of programs on a card may stop with an error, and registers of cores be read
# that nobody knows: what follows writes and reads nonsense. Everything else that a card does not allow is a complaint as before.

for dir in /sys/bus/pci/devices/*; do
	[ "$(cat "$dir/vendor")" = 0x1d0f ] || continue
	# The control of the model is at 0xc0 of configuration space.
	printf 'programs 1\n' | dd of="$dir/config" bs=1 seek=192 conv=notrunc 2>/dev/null
	if dd if="$dir/config" bs=1 skip=192 count=2 2>/dev/null | grep -q '^ok'; then
		echo "ok - ${dir##*/}: queues of programs may stop"
	else
		echo "not ok - ${dir##*/}: the control refuses \"programs 1\""
	fi
done
