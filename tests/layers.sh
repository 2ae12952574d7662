#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# make layers: circles of files in the modules and libraries, and the arrows between
# folders, from the compiler's own call graph; pictures of the folders in build/layers.

set -eu -o pipefail
. "$(dirname "$0")/vm/lib.sh"
cd "$ROOT"

tests/deps.sh build vm layers
work=$ROOT/build/layers
rm -rf "$work"
mkdir -p "$work"/{neuron,emu,pci,libneuron,libnrt}

# ccache keeps objects, not what the compiler writes beside them.
export CCACHE_DISABLE=1
built=$(tests/vm/modules.sh 6.12 KCFLAGS=-fcallgraph-info)
for part in base mem mem/buddy dma sysfs core emu pci; do
	group=neuron
	[[ $part != emu && $part != pci ]] || group=$part
	mkdir -p "$work/$group/kmod/$part"
	cp "$built/$part"/*.ci "$work/$group/kmod/$part"
done
make -s -C libneuron B="$work/objects" CFLAGS='-O2 -fcallgraph-info' lib-objects
mkdir "$work"/lib{neuron,nrt}/libneuron
cp -r "$work/objects/src" "$work/libneuron/libneuron"
cp -r "$work/objects/nrt" "$work/libnrt/libneuron"
# Only where there is gRPC.
rtd=()
if [ -d "$work/objects/rtd" ]; then
	mkdir -p "$work/rtd/libneuron"
	cp -r "$work/objects/rtd" "$work/rtd/libneuron"
	rtd=("neuron-rtd=$work/rtd")
fi

status=0
# Not another Python that comes first in the path: the package is for this one.
/usr/bin/python3 tests/layers.py --dot "$work" "neuron.ko=$work/neuron" "neuron_emu.ko=$work/emu" \
	"neuron_pci.ko=$work/pci" \
	"libneuron=$work/libneuron" "libnrt=$work/libnrt" "${rtd[@]}" || status=$?
for dot in "$work"/*.dot; do
	dot -Tsvg -o "${dot%.dot}.svg" "$dot"
done
echo "# pictures: $work/*.svg"
exit $status
