#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# make shell: a guest with the distribution's kernel, the modules loaded, library and
# tools installed, and a shell at this terminal. Everything it needs is built first.
# make card: the same with models of cards, whose kinds are in $CARD.
#
# usage: [CARD="trn2..."] shell.sh [DIR [OPTIONS]]
#	(DIR is shared with the guest, build/shared; options of run.sh)

set -eu -o pipefail
. "$(dirname "$0")/lib.sh"

shared=${1:-$ROOT/build/shared}
kernel=${KERNEL:-6.12}
"$ROOT/tests/deps.sh" build vm
mkdir -p "$shared" "$CACHE/tmp"

# A /dev/kvm that exists need not work: a guest without tests boots with it, or does
# not in 20 seconds. Tried once until this machine starts again.
known=$CACHE/tmp/kvm-$(cat /proc/sys/kernel/random/boot_id)
if [ ! -e "$known" ]; then
	rm -f "$CACHE"/tmp/kvm-*
	accel=tcg,thread=multi
	if [ -w /dev/kvm ]; then
		say "trying KVM"
		! "$ROOT/tests/vm/run.sh" "$kernel" --accel kvm --timeout 20 --log kvm >/dev/null 2>&1 ||
			accel=kvm
	fi
	echo "$accel" >"$known"
fi
accel=$(cat "$known")
cards=()
for card in ${CARD:-}; do
	cards+=(--card "$card")
done
say "building what is missing"
"$ROOT/tests/vm/modules.sh" "$kernel" >/dev/null
say "starting a guest (${accel%%,*}); $shared is /shared there"
exec "$ROOT/tests/vm/run.sh" "$kernel" --accel "$accel" --shell "$(readlink -f "$shared")" --mem 2048 \
	--log shell "${cards[@]}" "${@:2}"
