#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Text of several sequences at a time, with a paged pool that has a third of what they want.

neuron-demo -m decoder >/tmp/decoder 2>&1
status=$?
grep '^# evictions\|^ok - \|^not ok - ' /tmp/decoder
[ $status = 0 ] || { echo "not ok - neuron-demo -m decoder: status $status"; exit 1; }
