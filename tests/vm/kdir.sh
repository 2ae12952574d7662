#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Print the KDIR of a kernel in the cache, making it first if needed.
# usage: kdir.sh 6.1|6.12|7.3|7.3-rt|7.3-cloud|debug|kcsan|fuzz|uml|uml-bench|arm64|7.3-debug [kdir|image|modules|release]

set -eu
. "$(dirname "$0")/lib.sh"

[ $# -ge 1 ] || die "usage: kdir.sh 6.1|6.12|7.3|7.3-rt|7.3-cloud|debug|kcsan|fuzz|uml|uml-bench|arm64|7.3-debug [kdir|image|modules|release]"
"$ROOT/tests/vm/kernels.sh" "$1"
dir=$(readlink -f "$CACHE/kernels/$1-$("$ROOT/tests/vm/kernels.sh" --hash "$1")")
case ${2:-kdir} in
kdir|image)	readlink -f "$dir/${2:-kdir}" ;;
modules)	readlink -e "$dir/modules" || true ;;
release)	cat "$dir/release" ;;
*)		die "unknown part $2" ;;
esac
