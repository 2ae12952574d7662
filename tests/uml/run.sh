#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The KUnit suites in User Mode Linux: seconds from a change to an answer.

set -eu -o pipefail
. "$(dirname "$0")/../vm/lib.sh"

modules=$("$ROOT/tests/vm/modules.sh" uml)
exec "$ROOT/tests/vm/run.sh" uml --modules "$modules" --test "$ROOT/tests/vm/kunit.sh" \
	--mem 512 --timeout 300 "$@"
