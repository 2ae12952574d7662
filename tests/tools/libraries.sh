#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The libraries as the loader sees them: programs that were linked against a vendor's
# libnrt start, and unloading does not take code from threads. For libraries that were
# built (make lib).
#
# shellcheck disable=SC2016,SC2034,SC2317	# check() evaluates

cd "$(dirname "$0")/../.." || exit 1
cc=${CC:-cc}
built=$PWD/libneuron/build
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
bad=0

check() {
	if eval "$2" >"$dir/out" 2>&1; then
		echo "ok - $1"
	else
		echo "not ok - $1"
		sed 's/^/# /' "$dir/out"
		bad=1
	fi
}

# A library that has only the names, in the nodes where programs look for them.
cat >"$dir/stub.c" <<'EOF'
int nrt_get_version(void *version, unsigned long size) { (void)version; (void)size; return 99; }
const char *nrt_get_status_as_str(int status) { (void)status; return "stub"; }
int nrta_is_completed(unsigned long seq, _Bool *done) { (void)seq; (void)done; return 99; }
EOF
cat >"$dir/stub.map" <<'EOF'
NRT_2.0.0 { global: nrt_*; local: *; };
NRT_3.0.0 { global: nrta_*; };
EOF
cat >"$dir/program.c" <<'EOF'
#include <stdio.h>
#include <nrt/nrt_async.h>
int main(void)
{
	nrt_version_t version;
	bool done;

	return nrt_get_version(&version, sizeof(version)) != NRT_SUCCESS ||
	       nrta_is_completed(1, &done) != NRT_UNINITIALIZED ||
	       puts(nrt_get_status_as_str(NRT_TIMEOUT)) < 0;
}
EOF
cat >"$dir/unload.c" <<'EOF'
#include <dlfcn.h>
#include <stddef.h>
int main(int argc, char **argv)
{
	void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;

	return !library || dlclose(library) || !dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD);
}
EOF
cat >"$dir/signals.c" <<'EOF'
#include <dlfcn.h>
#include <signal.h>
#include <stddef.h>

int main(int argc, char **argv)
{
	struct sigaction was[NSIG], now;
	int i, taken = argc < 2;

	for (i = 1; i < NSIG; i++)
		sigaction(i, NULL, &was[i]);
	if (!taken && !dlopen(argv[1], RTLD_NOW))
		return 2;
	for (i = 1; i < NSIG; i++)
		taken |= !sigaction(i, NULL, &now) && now.sa_handler != was[i].sa_handler;
	return taken;
}
EOF

check "a stub with the vendor's version nodes" '$cc -shared -fPIC -Wl,-soname,libnrt.so.1 \
	-Wl,--version-script=$dir/stub.map -o $dir/libnrt.so.1 $dir/stub.c &&
	ln -s libnrt.so.1 $dir/libnrt.so'
check "a program that is linked against it" '$cc -Ilibneuron/include -o $dir/program \
	$dir/program.c -L$dir -lnrt -Wl,-z,now &&
	! LD_LIBRARY_PATH=$dir $dir/program'
check "C1: it runs on our library" 'LD_LIBRARY_PATH=$built $dir/program && grep -qx NRT_TIMEOUT $dir/out'
check "a program that unloads a library" '$cc -o $dir/unload $dir/unload.c -ldl'
check "a program that looks at its signals" '$cc -o $dir/signals $dir/signals.c -ldl'
for library in libnrt.so.1 libneuron.so.0; do
	check "L9: $library stays" 'LD_LIBRARY_PATH=$built $dir/unload $library'
	check "$library takes no signal" 'LD_LIBRARY_PATH=$built $dir/signals $library'
done
exit $bad
