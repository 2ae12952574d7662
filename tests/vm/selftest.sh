#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Proof that the rig notices what it must: each case boots the debug kernel, does
# something wrong, and passes only if run.sh failed for the right reason. One case
# does nothing wrong and must pass.
#
# usage: selftest.sh [short|CASE...]	(short: what User Mode Linux shows as well is left out)

set -eu -o pipefail
. "$(dirname "$0")/lib.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf '#!/bin/sh\nmodprobe neuron_emu && echo ok - loaded\n' >"$work/load.sh"

# The faulty module for a kernel; prints its directory.
build_faulty() {
	local kernel=$1 dir=$CACHE/build/faulty-$1 kdir

	mkdir -p "$dir" "$CACHE/logs" "$CACHE/lock"
	kdir=$("$ROOT/tests/vm/kdir.sh" "$kernel")
	exec 9>"$CACHE/lock/faulty-$kernel"
	flock 9
	cp -u "$ROOT"/tests/vm/faulty/* "$dir"
	logged "$CACHE/logs/faulty-$kernel.log" make -C "$kdir" M="$dir" modules
	flock -u 9
	echo "$dir/faulty.ko"
}

passed=0 failed=0

result() {
	if [ "$1" = 0 ]; then
		passed=$((passed + 1))
		echo "ok - rig: $2"
	else
		failed=$((failed + 1))
		echo "not ok - rig: $2"
		sed 's/^/#   /' "$work/out"
	fi
}

# expect CASE REASON TEXT SCRIPT [run.sh options], on $kernel
expect() {
	local name=$1 reason=$2 text=$3 script=$4 bad=0 module
	shift 4

	module=$(build_faulty "$kernel")
	printf '#!/bin/sh\n%s\n' "$script" >"$work/$name.sh"
	if "$ROOT/tests/vm/run.sh" $kernel --module "$module" --test "$work/$name.sh" \
			--log "selftest-$name" --mem 512 "$@" >"$work/out" 2>&1; then
		[ "$reason" = none ] || bad=1
	else
		grep -qx "# reason: $reason" "$work/out" || bad=1
	fi
	result $bad "$text"
}

# expect_cut USER TEXT: a driver that cuts memory which a USER has, as no driver of ours
# must (mem/grow.c asks before), is caught by its own option check_users.
expect_cut() {
	local user=$1 tree=$CACHE/build/selftest-cut bad=0 modules

	mkdir -p "$tree"
	(cd "$ROOT" && git ls-files -co --exclude-standard kmod uapi tests/vm tests/kunit VERSION) |
		rsync -a --delete --files-from=- "$ROOT/" "$tree/"
	sed -i 's/i < ARRAY_SIZE(chunk->users)/0 \&\& &/' "$tree/kmod/mem/grow.c"
	if cmp -s {"$ROOT","$tree"}/kmod/mem/grow.c ||
	   ! modules=$("$tree/tests/vm/modules.sh" uml NEURON_KUNIT=0 2>"$work/out"); then
		bad=1
	elif "$ROOT/tests/vm/run.sh" uml --modules "$modules" --test "$work/load.sh" \
			--test "$ROOT/tests/vm/faulty/cut.c" --append "neuron.check_users=1 user=$user" \
			--log "selftest-cut-$user" >"$work/out" 2>&1; then
		bad=1
	else
		grep -qx "# reason: warn" "$work/out" &&
			grep -q "is freed and part of a $user\$" "$work/out" || bad=1
	fi
	result $bad "$2"
}

# refuse DIR MISSING TEXT: run.sh of a kernel of one's own says at once what is not there.
refuse() {
	local bad=0

	"$ROOT/tests/vm/run.sh" "$1" --test "$work/load.sh" >"$work/out" 2>&1 && bad=1
	grep -q "$1: .*$2" "$work/out" || bad=1
	result $bad "$3"
}

# What the host and init notice runs in User Mode Linux, which boots in no time, and what
# it notices itself.
fault='modprobe faulty fault='
run_case() {
	local kernel=debug

	case $1 in
	clean)	expect clean none "a run without faults passes" \
			"modprobe faulty && rmmod faulty && echo ok - loaded" ;;
	oops)	expect oops oops "an oops is noticed" "${fault}oops" --no-leaks ;;
	warn)	expect warn warn "a warning is noticed" "${fault}warn" --no-leaks ;;
	kasan)	expect kasan kasan "an access out of bounds is noticed" "${fault}kasan" --no-leaks ;;
	ubsan)	expect ubsan ubsan "a shift out of bounds is noticed" "${fault}ubsan" --no-leaks ;;
	lockdep) expect lockdep lockdep "a lock inversion is noticed" "${fault}lockdep" --no-leaks ;;
	atomic-sleep) expect atomic-sleep atomic-sleep "sleeping under a spinlock is noticed" \
			"${fault}atomic-sleep" --no-leaks ;;
	leak)	expect leak kmemleak "a memory leak is noticed" "${fault}leak" ;;
	soft-lockup) expect soft-lockup soft-lockup "a processor that loops is noticed" \
			"${fault}soft-lockup" --no-leaks --append watchdog_thresh=3 ;;
	hung-task) expect hung-task hung-task "a task that hangs is noticed" \
			"${fault}hung-task; sleep 60" --no-leaks \
			--append sysctl.kernel.hung_task_timeout_secs=5 ;;
	race)	# Not among the cases of make test: its kernel takes minutes to build.
		kernel=kcsan
		expect race kcsan "a data race is noticed" "${fault}race" ;;
	uninit)	# Nor is this one.
		kernel=kmsan
		expect uninit kmsan "the use of memory that nobody wrote is noticed" "${fault}uninit" \
			--mem 4096 ;;
	dead)	# Both processors, so that none is left to complain.
		expect dead timeout "a guest that stops is noticed" \
			"(${fault}dead) & insmod /lib/modules/*/updates/faulty.ko fault=dead" \
			--no-leaks --timeout 25 --append "nowatchdog nmi_watchdog=0" ;;
	uml-clean) kernel=uml
		expect uml-clean none "UML: a run without faults passes" \
			"modprobe faulty && rmmod faulty && echo ok - loaded" ;;
	uml-warn) kernel=uml
		expect uml-warn warn "UML: a warning is noticed" "${fault}warn" ;;
	uml-oops) kernel=uml
		expect uml-oops panic "UML: an oops is noticed" "${fault}oops" ;;
	uml-kasan) kernel=uml
		expect uml-kasan kasan "UML: an access out of bounds is noticed" "${fault}kasan" ;;
	uml-lockdep) kernel=uml
		expect uml-lockdep lockdep "UML: a lock inversion is noticed" "${fault}lockdep" ;;
	uml-rcu) kernel=uml
		expect uml-rcu lockdep "UML: a look-up without RCU is noticed" "${fault}rcu" ;;
	uml-atomic-sleep) kernel=uml
		expect uml-atomic-sleep atomic-sleep "UML: sleeping under a spinlock is noticed" \
			"${fault}atomic-sleep" ;;
	uml-leak) kernel=uml
		expect uml-leak kmemleak "UML: a memory leak is noticed" "${fault}leak" ;;
	no-verdict) kernel=uml
		expect no-verdict no-verdict "a guest that ends without verdict is noticed" \
			"busybox poweroff -f" ;;
	timeout) kernel=uml
		expect timeout "test" "a test that does not end is noticed" \
			"echo ok - begun; sleep 1000" --test-timeout 3 ;;
	status)	kernel=uml
		expect status "test" "a test with a failing status is noticed" \
			"echo ok - one; exit 3" ;;
	signal)	kernel=uml
		expect signal "test" "a test that is killed is noticed" \
			"echo ok - one; kill -9 \$\$" ;;
	point)	kernel=uml
		expect point "test" "a failing point is noticed, whatever the status" \
			"echo ok - one; echo not ok - two; exit 0" ;;
	forged)	# What a test prints must not be taken for a verdict.
		kernel=uml
		expect forged no-verdict "a forged verdict is not believed" \
			"printf 'plan 1\ntest 10-forged.sh 0 1 0\ndone\n'; busybox poweroff -f" ;;
	no-kernel)
		mkdir -p "$work"/{empty,built/include/config}
		echo 6.12.0 >"$work/built/include/config/kernel.release"
		refuse "$work/none" "no such directory" "a kernel directory that does not exist is named"
		refuse "$work/empty" include/config/kernel.release "one without a kernel is named"
		refuse "$work/built" arch/x86/boot/bzImage "one without an image is named" ;;
	cut-*)	expect_cut "${1#cut-}" "memory that is freed under a ${1#cut-} is noticed" ;;
	*)	die "unknown case $1" ;;
	esac
}

if [ $# = 0 ] || [ "$*" = short ]; then
	[ $# = 0 ] && twice="oops warn kasan lockdep atomic-sleep leak" || twice=
	set -- uml-clean uml-warn uml-oops uml-kasan uml-lockdep uml-rcu uml-atomic-sleep uml-leak \
		no-verdict timeout status signal point forged no-kernel cut-mapping cut-dma-buf cut-ring \
		clean $twice ubsan soft-lockup hung-task dead
fi
for name; do
	run_case "$name"
done

echo "# rig self-test: $passed passed, $failed failed"
[ $failed = 0 ]
