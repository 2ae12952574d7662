#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Record allocation traces: boot a distribution's kernel with the whole stack, load,
# run and unload models (guest/loads.c and the demo), and write what the tracepoints
# of neuron.ko say to traces/.
#
# usage: record-traces.sh [DIRECTORY [LOADS [SEED]]]

set -eu -o pipefail
# All of it is read before it runs: that takes a while, and this file may change.
{
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
. "$root/tests/vm/lib.sh"
to=${1:-$here/traces} loads=${2:-20} seed=${3:-1}
kernel=${KERNEL:-6.12}

"$root/tests/deps.sh" build vm
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
make -s -C "$root" lib
gcc -O1 -std=gnu11 -Wall -Wextra -I"$root/uapi" -I"$root/libneuron/include" \
	-o "$work/loads" "$here/guest/loads.c" -L"$root/libneuron/build" -Wl,-rpath-link,"$root/libneuron/build" -lnrt
{ echo "#!/bin/sh"; echo "export LOADS=$loads SEED=$seed"; tail -n +2 "$here/guest/record.sh"; } \
	>"$work/record.sh"
"$root/tests/vm/run.sh" "$kernel" --stack --log record --mem 2048 --timeout 3600 \
	--test-timeout 3400 --file "$root/tests/models:/usr/share/neuron/models" \
	--file "$work/loads:/bin/loads" --file "$here/trace.awk" --test "$work/record.sh"
mkdir -p "$to"
tr -d '\r' <"$CACHE/logs/record/output.log" | awk -v to="$to" '
	/^# trace / { file = to "/" $3 ".trace"; printf "" >file; next }
	/^# end$/ { close(file); file = ""; next }
	file { print >file }'
ls -l "$to"
exit
}
