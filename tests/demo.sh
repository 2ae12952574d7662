#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# make demo: the example models on the software device, or with CARD=trn2 on a model of a card,
# in a virtual machine with the distribution's kernel. Everything it needs is installed or
# built first.
# Arguments are passed on to tests/vm/run.sh.

set -eu -o pipefail
cd "$(dirname "$0")/.."

tests/deps.sh build vm
kernel=${KERNEL:-6.12}
release=$(tests/vm/kdir.sh "$kernel" release)
echo "# building the modules for $release, the library and the tools"
tests/vm/modules.sh "$kernel" >/dev/null
echo "# starting a virtual machine with the distribution's kernel $release"
exec tests/vm/run.sh "$kernel" --stack --stream --log "demo${CARD:+-card}" --test-timeout 900 --timeout 1200 \
	--mem 2048 ${CARD:+--card "$CARD"} --test tests/vm/demo.sh "$@"
