#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# For guests without what tests/vm/guest/00-load.sh looks at.

modprobe neuron_emu && echo "ok - neuron_emu is loaded"
