#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A kernel that was only prepared has no symbol table for modpost to check against.
# Look instead whether its source exports what the modules use.
#
# usage: exports.sh SERIES MODULE.ko...

set -eu -o pipefail
. "$(dirname "$0")/lib.sh"

[ $# -ge 2 ] || die "usage: exports.sh SERIES MODULE.ko..."
source=$("$ROOT/tests/vm/kernels.sh" --source "$1")
shift

list=$source.exports
if [ ! -s "$list" ]; then
	(cd "$source" &&
	 grep -rhoE --include='*.[chS]' '\bEXPORT_[A-Z_]*SYMBOL[A-Z_]*\( *\w+' arch/x86 block \
		drivers/base drivers/char drivers/dma-buf drivers/gpu drivers/pci fs init kernel \
		lib mm net/core security) | sed 's/.*( *//' | sort -u >"$list.$$"
	mv "$list.$$" "$list"
fi

# Made by macros, which hide the names: sanitizer hooks, static calls, dev_err() and
# its like, types of module parameters.
made='^(__asan_|__SC[TK]__|_dev_|param_ops_)'
own=$(nm "$@" 2>/dev/null | sed -n 's/.* __ksymtab_//p')
# A tracepoint is exported by its own name, and used by what a macro makes of it.
missing=$(nm -u "$@" | awk 'NF == 2 { print $2 }' | sed -E 's/^__trace(point|iter)_//' |
	  sort -u | grep -vE "$made" |
	  comm -23 - <(sort -u "$list" - <<<"$own"))
if [ -n "$missing" ]; then
	echo "not exported: $(tr '\n' ' ' <<<"$missing")" >&2
	exit 1
fi
