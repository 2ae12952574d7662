#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# make test: everything, from host unit tests to the whole stack in virtual
# machines. Missing packages are installed, kernels fetched and built (into the
# cache, once). Each step's output goes to $CACHE/logs/test. In the end a table says how
# long each step took, and what failed is shown; the last line is "N passed, N failed",
# and the exit status agrees with it.
#
# Steps without a guest run one after the other; beside them run those with one, two at
# a time where 8 GB are free, else one ($GUESTS says otherwise): a guest waits a third of its
# time. Where no step of one kind is left, those of the other are helped with.
#
# usage: run.sh [STEP...]	("run.sh list" names the steps; "all": and those below)
#
# Not among the steps of "make test", because they take long; "make test-all" has them:
#   debian-12	each command in README.md in a clean root of that release
#   debian-13
#   image-12	make image with other people's programs, Secure Boot, the workflow that
#   image-13	loads modules
#   slurm	a cluster of two machines with devices
#   deb-12	the packages with an upgrade, and their modules in guests
#   deb-13
#   vm-debug-all the whole stack on the debug kernel; vm-debug is what needs two processors
#   vm-6.1-all	the whole stack on 6.1 and 7.3; vm-6.1 and vm-7.3 are what depends on
#   vm-7.3-all	the kernel
#   vm-6.12-all	the whole stack on 6.12 and in User Mode Linux; vm-6.12 and vm-uml leave to
#   vm-uml-all	each other, and to vm-debug, what takes long
#   vm-7.3-rt	the whole stack on the distribution's PREEMPT_RT kernel
#   vm-7.3-cloud	the same on its kernel for virtual machines
#   vm-7.3-debug the whole stack on 7.3 with the options of the debug kernel
#   card-all	the other tests of tests/vm/guest that run on a card, one of two cards that is
#		removed, two behind an IOMMU, 20 loads, a card on 6.1 and 7.3, queues that do
#		not stop, the fuzzer
#   card-debug	a card on the debug kernels of 6.12 and 7.3
#   randconfig	the modules for kernels with options drawn by lot
#   kcsan	the data race detector: KUnit suites and the whole stack
#   kmsan	the detector of uninitialised memory: KUnit suites and what programs get
#   coverage-lib	the host tests of the library, counting the lines that run
#   coverage-vm	the whole stack on the debug kernel, counting the lines that run
#   pairs	every call against every other for $SECONDS_OF_PAIRS seconds, debug kernel
#   fuzz-ioctl	the fuzzer of /dev/neuronN with coverage, for $SECONDS_TO_FUZZ seconds
#		from seed $SEED; with $CORPUS, the calls that led on are written to that file

set -u -o pipefail
. "$(dirname "$0")/vm/lib.sh"
cd "$ROOT" || exit 1

# The longest first, without a guest and with one, so that none runs alone in the end.
steps=(abi lib vm-uml tools readme property deb fuzz vm-checked dkms rtd
       build-6.1 build-6.12 build-7.3 uml-kunit model tap
       vm-debug image vm-6.12 card card-suites rig vm-6.1 vm-7.3 card-demo bench vm-kunit
       vm-card-like demo rtd-guest shell)
long_steps=(debian-12 debian-13 deb-12 deb-13 image-12 image-13 slurm coverage-lib rig-all randconfig build-clang series arm64 kcsan kmsan coverage-vm
	    vm-debug-all vm-7.3-debug vm-7.3-rt vm-7.3-cloud
	    vm-7.3-all vm-6.12-all vm-6.1-all vm-uml-all vm-card-like-all card-all card-debug pairs fuzz-ioctl)

case ${1:-} in
list)	printf '%s\n' "${steps[@]}"
	exit 0 ;;
all)	set -- "${steps[@]}" "${long_steps[@]}" ;;
esac

logs=$CACHE/logs/test
seed=${SEED:-$(date +%s)}
mkdir -p "$logs"
results=$(mktemp)	# a line for each step: name, passed, failed, seconds, their processor time
guests=$(mktemp)		# the steps with a guest that nobody has begun
hosts=$(mktemp)		# and those without
ended=$(mktemp)		# the steps that came to their end
lanes=()
# What the steps of this run make once for all of them.
mkdir -p "$CACHE/tmp"
NEURON_RUN=$(mktemp -d "$CACHE/tmp/run.XXXXXX")
export NEURON_RUN

# What was started ends with this program: each lane is a process group.
at_exit() {
	local lane

	for lane in "${lanes[@]}"; do
		kill -TERM -- "-$lane" 2>/dev/null
	done
	rm -f "$results" "$guests" "$hosts" "$ended"
	rm -rf "$NEURON_RUN" "$CACHE/lock/${NEURON_RUN##*/}"-*
}
trap at_exit EXIT
trap 'exit 130' INT TERM
began=$SECONDS

# account STEP LOG STATUS SECONDS CPU: a step ends with "N passed, N failed"; of one that
# does not, the "ok" and "not ok" lines count, or else its exit status.
account() {
	local line p=0 f=0

	line=$(grep -oE '[0-9]+ passed, [0-9]+ failed' "$2" | tail -n 1)
	if [ -n "$line" ]; then
		p=${line%% *}
		f=${line#*, }
		f=${f%% *}
	else
		p=$(grep -cE '^ok\b' "$2")
		f=$(grep -cE '^not ok\b' "$2")
		[ "$3$p$f" != 000 ] || p=1
	fi
	# A step that failed without a failed point has one.
	if [ "$3" != 0 ] && [ "$f" = 0 ]; then
		f=1
	fi
	echo "$1 $p $f $4 $5" >>"$results"
	printf '%-12s %5d passed, %d failed  (%d s)\n' "$1" "$p" "$f" "$4"
	[ "$p$f" != 00 ] || grep '^# skipped' "$2"
}

# What failed in a step, last of all: the end of the output is what is kept.
excerpt() {
	grep -E -A3 '^(# )?not ok|rror:|Error |^# (reason|trace)' "$logs/$1.log" | head -n 20 | sed 's/^/  | /'
	echo "  | ... see $logs/$1.log"
}

step() {
	local name=$1 start=$SECONDS status=0 cpu TIMEFORMAT='%U %S'

	shift
	{ time "$@" >"$logs/$name.log" 2>&1 </dev/null; } 2>"$logs/$name.time" || status=$?
	cpu=$(awk '{ printf "%d", $1 + $2 }' "$logs/$name.time")
	# In one piece, beside what other lanes print.
	printf '%s\n' "$(account "$name" "$logs/$name.log" $status $((SECONDS - start)) "$cpu")"
}

# Modules for one kernel, without a warning.
build_modules() {
	local warnings=$logs/build-$1.out

	if ! tests/vm/modules.sh "$1" >/dev/null 2>"$warnings"; then
		cat "$warnings"
		return 1
	fi
	if grep -E 'warning:|WARNING:' "$warnings"; then
		echo "not ok - modules for $1 build with warnings"
		return 1
	fi
	echo "ok - modules for $1"
}

# What depends on the version of the kernel more than other tests do.
kernel_dependent='^(00-load|40-udev|card_like|configfs|crwl|death|dmabuf|dmabuf_sync|dmem|driver|examples|fdinfo|grow|mmap|notify|process|regs|removal|zerocopy|zz-unload)\.'

# What happens in the driver on two processors at once, or cannot be had in User Mode Linux
# (CONFIG_DMA_API_DEBUG, which watches what is like a card).  That one has the other checks of the
# debug kernel, and a test takes a tenth of the time.
concurrent='^(async|card_like|crwl|death|dmabuf|eventfd|fuzz_ioctl|grow|mmap|move|notify|pairs|process|removal|reset|scrub|stress|trace|zerocopy|zz-unload)\.'

# What the debug kernel is enough for: tests that draw what they do, and take long for it.
drawn='fuzz_ioctl|move|pairs|stress'

# What other kernels are enough for: these, programs of users, half a minute of waiting, what
# the software device does by itself, in an order that a seed decides.
not_in_uml="^($drawn|[2-4][0-9]-.*|zy-instances)\."
not_in_6_12="^($drawn|dmabuf_sync|neuron_shuffle)\."

# What the driver does in another way for a card: the device of the guest is like one.
card_like='^(async|dma_compute|driver|eventfd|mmap|notify|process|removal|scrub|zerocopy|zz-unload)\.'

# What attacks the device interface, on a device that checks no descriptor: the driver does.
hostile='^(driver|foreign|fuzz_ioctl|ioctl_hostile|regs|refusals|vendor_bugs|zz-unload)\.'

# What the driver hands to programs, or to a device: where memory that nobody wrote would show.
handed_out='^(async|caps|crwl|dma_compute|driver|events|fdinfo|ioctl_hostile|mem_owners|mmap|neuron_compute|notify|owners|process|refusals|regs|report|vendor_table|zz-unload)\.'

# Where programs are trusted, only what works is promised.
trusted='^(foreign|zz-unload)\.'

fuzzer=(--test tests/fuzz/ioctl/fuzz_ioctl.c --file tests/fuzz/ioctl/corpus)

# What tests/vm/guest/nrt_hosts.c loads: libfabric, and a provider that takes memory of devices.
make_fabric() {
	make_here tests/fabric || return 1
	fabric=(--file "$(gcc -print-file-name=libfabric.so.1)":/usr/lib/libfabric.so.1
		--file tests/fabric/build/libmodel-fi.so:/usr/lib/libfabric/libmodel-fi.so)
}

# The whole stack in a guest: the tests of tests/vm/guest, in order; or those whose name
# matches $only, without those whose name matches $but.
stack() {
	local kernel=$1 first=() tests=() file
	shift

	make_fabric || return 1
	# Kernels that are built here have no Internet protocols.
	[ -n "$(tests/vm/kdir.sh "$kernel" modules)" ] || local but="${but:-^$}|^nrt_hosts\."
	[[ 00-load.sh =~ ${only:-.} ]] || first=(--test tests/vm/load.sh)
	for file in tests/vm/guest/[0-9]*.sh tests/vm/guest/*.c tests/fuzz/ioctl/*.c \
		    tests/vm/guest/z*.sh; do
		if [ -e "$file" ] && [[ ${file##*/} =~ ${only:-.} && ! ${file##*/} =~ ${but:-^$} ]]; then
			tests+=(--test "$file")
		fi
	done
	if [ ${#tests[@]} = 0 ]; then
		echo "not ok - no tests in tests/vm/guest"
		return 1
	fi
	tests/vm/run.sh "$kernel" --stack --log "stack-$kernel" --mem 2048 --timeout 3000 \
		--test-timeout 900 \
		--file "$(command -v udevadm)":/usr/bin/udevadm --file tests/fuzz/ioctl/corpus \
		--file "$(command -v udevadm)":/usr/lib/systemd/systemd-udevd \
		--file "$(command -v systemd-sysusers)":/usr/bin/systemd-sysusers \
		"${fabric[@]}" "${first[@]}" "${tests[@]}" "$@"
}

kunit_vm() {
	local kernel=$1 modules
	shift

	modules=$(tests/vm/modules.sh "$kernel") || return 1
	tests/vm/run.sh "$kernel" --modules "$modules" --test tests/vm/kunit.sh \
		--log "kunit-$kernel" --timeout 900 --test-timeout 600 "$@"
}

# Of the tests of tests/vm/guest: on arm64, and those with the library.
arm64=(async caps charge crwl datastore death dma_compute dmabuf dmabuf_sync driver eventfd events
       fdinfo grow hbm_ranges ioctl_hostile mmap notify owners process refusals regs vendor_table
       zerocopy)
arm64_library=(bulk card_like compat examples faults mem_owners mem_tool move neff_compute
	       neuron_compute neuron_group neuron_pools neuron_share neuron_stream nrt_cc nrt_dmabuf nrt_host)
# What depends on how long a page is.
arm64_pages=(bulk card_like compat dmabuf driver fdinfo grow hbm_ranges ioctl_hostile lnc2 mmap move
	     neuron_api neuron_offload neuron_pools nrt_dmabuf nrt_life preflight_now process profile
	     refusals regs report zerocopy)

# arm64_guest KERNEL NAME...
arm64_guest() {
	local kernel=$1 tests=() name
	shift

	for name; do
		tests+=(--test "tests/vm/guest/$name.c")
	done
	tests/vm/run.sh "$kernel" --stack --log "stack-$kernel" --mem 2048 --timeout 3600 \
		--test-timeout 900 --test tests/vm/load.sh --test tests/abi/abi_check.c "${tests[@]}"
}

# on_card LOG KERNEL CARD NAME...: tests of tests/vm/guest in a guest whose neuron0 is a card.
on_card() {
	local log=$1 kernel=$2 card=$3 tests=() name
	shift 3

	for name; do
		tests+=(--test "tests/vm/guest/$name.c")
	done
	make_fabric || return 1
	with_card tests/vm/run.sh "$kernel" --stack --mem 2048 --card "$card" --log "$log" \
		--timeout 1800 "${fabric[@]}" --test tests/card/guest_load.sh "${tests[@]}"
}

# card_debug KERNEL: a card on a debug kernel.
card_debug() {
	with_card tests/vm/run.sh "$1" --stack --mem 2048 --card trn2:64 --log "card-$1" \
		--timeout 3600 --test-timeout 1200 --append "fuzz.seconds=120 fuzz.seed=$seed" \
		--test tests/card/guest_driver.c --test tests/card/guest_copy.c \
		--test tests/card/guest_p2p.c \
		--test tests/card/guest_faults.c --test tests/card/guest_load.sh \
		--test tests/vm/guest/foreign.c --test tests/vm/guest/process.c \
		--test tests/card/guest_programs.sh "${fuzzer[@]}" \
		--test tests/vm/guest/zz-unload.sh
}

# A kernel that is named by its build directory, as tests/card/README.md says it.
card_own() {
	local kdir

	kdir=$(tests/vm/kdir.sh debug) || return 1
	with_card tests/vm/run.sh "$kdir" --stack --mem 2048 --card trn2 --log card-own \
		--test tests/card/guest_load.sh --test tests/vm/guest/zz-unload.sh
}

pairs() {
	local seconds=${SECONDS_OF_PAIRS:-1800}

	tests/vm/run.sh debug --stack --log pairs --mem 2048 --timeout $((seconds + 900)) \
		--test-timeout $((seconds + 600)) --append "pairs.seconds=$seconds pairs.rounds=20" \
		--test tests/vm/load.sh --test tests/vm/guest/pairs.c \
		--test tests/vm/guest/zz-unload.sh
}

fuzz_ioctl() {
	local seconds=${SECONDS_TO_FUZZ:-600}

	tests/vm/run.sh fuzz --stack --log fuzz-ioctl --mem 2048 --timeout $((seconds + 900)) \
		--test-timeout $((seconds + 300)) \
		--append "fuzz.seconds=$seconds fuzz.seed=$seed" \
		--test tests/vm/load.sh "${fuzzer[@]}" --test tests/vm/guest/zz-unload.sh &&
	{ [ -z "${CORPUS:-}" ] || tr -d '\r' <"$CACHE/logs/fuzz-ioctl/output.log" |
		sed -n 's/^corpus: //p' | LC_ALL=C sort -u >"$CORPUS"; }
}

# tap.py decides what counts: it must count right.
tap_test() {
	local out bad=0 dir
	dir=$(mktemp -d)

	printf '%s\n' 'KTAP version 1' '1..2' '    KTAP version 1' '    # Subtest: a' '    1..2' \
		'    ok 1 x' '    ok 2 y' 'ok 1 a' '    1..1' '    not ok 1 z' 'not ok 2 b' >"$dir/1"
	out=$(tests/tap.py "$dir/1" | tail -n 1)
	[ "$out" = "# tests: 2 passed, 2 failed" ] || { echo "not ok - nested: $out"; bad=1; }
	printf '%s\n' '1..3' 'ok 1 x' 'ok 2 y' >"$dir/2"
	out=$(tests/tap.py "$dir/2" | tail -n 1)
	[ "$out" = "# tests: 2 passed, 1 failed" ] || { echo "not ok - plan: $out"; bad=1; }
	: >"$dir/3"
	! tests/tap.py "$dir/3" >/dev/null || { echo "not ok - empty"; bad=1; }
	rm -rf "$dir"
	return $bad
}

rtd_test() {
	tests/deps.sh rtd && make_here tests/rtd -j"$JOBS" check
}

# The installed daemon on the software device, and its clients.
rtd_guest() {
	tests/deps.sh rtd && make_here tests/rtd guest &&
	tests/vm/run.sh 6.12 --stack --log rtd-guest --test tests/vm/load.sh \
		--test "$CACHE/rtd/guest/neuron-rtd" --test tests/vm/guest/zz-unload.sh
}

# with_card COMMAND...: what cannot be tried is neither passed nor failed.
with_card() {
	if ! tests/card/qemu.sh >/dev/null; then
		echo "# skipped: no QEMU with vfio-user-pci can be had"
		echo "0 passed, 0 failed"
		return 0
	fi
	make_here tests/card && "$@"
}

sixteen=()
for ((i = 0; i < 16; i++)); do
	sixteen+=(--card trn2:0:1024)
done

# One at a time are those whose apt keeps its packages in $CACHE/archives.
run_step() {
	case $1 in
	abi)		step abi make -s -C tests/abi check
			step sysfs-docs make -s -C tests/abi sysfs-docs ;;
	lib)		step lib make -s -j"$JOBS" -C tests/lib
			step tsan make -s -C tests/lib tsan ;;
	tap)		step tap tap_test ;;
	property)	step property make -s -C tests/cbmc check ;;
	fuzz)		step fuzz make -s -C tests/fuzz check ;;
	bench)		step bench make -s -C tests/bench check
			step bench-nrt tests/bench/nrt.sh "$CACHE/bench/quick" quick
			step bench-pools make -s -C tests/bench pools OPERATIONS=10000 \
				RESULTS="$CACHE/bench/quick" ;;
	model)		step model make -s -C tests/models check ;;
	tools)		step tools make_here . lib libneuron-check
			step libraries tests/tools/libraries.sh
			step neuron-neff tests/tools/neuron-neff.sh
			step neuron-mem tests/tools/neuron-mem.sh
			step neuron-top tests/tools/neuron-top.py
			step neuron-monitor tests/tools/neuron-monitor.py
			step install tests/tools/install.sh ;;
	rtd)		step rtd rtd_test ;;
	rtd-guest)	step rtd-guest rtd_guest ;;
	readme)		step readme alone archives tests/readme.sh debian-12 build ;;
	debian-*)	step "$1" alone archives tests/readme.sh "$1" ;;
	dkms)		step dkms alone dkms tests/dkms.sh ;;
	image)		step image alone archives tests/image/test.sh debian-12 ;;
	image-*)	step "$1" alone archives tests/image/test.sh "debian-${1#image-}" all ;;
	slurm)		step slurm alone archives tests/image/test.sh debian-13 slurm ;;
	deb)		step deb alone archives tests/deb.sh debian-12 ;;
	deb-*)		step "$1" alone archives tests/deb.sh "debian-${1#deb-}" all ;;
	shell)		step shell tests/vm/shell.py ;;
	card)		step card-model make_here tests/card check
			step card with_card tests/vm/run.sh 6.12 --card trn2 --log card \
				--test tests/card/build/guest_probe
			step card-driver with_card tests/vm/run.sh 6.12 --stack --mem 1536 \
				--card trn1 --card inf2 --card trn2:64 --log card-driver \
				--test tests/card/guest_driver.c --test tests/card/guest_copy.c \
				--test tests/card/guest_sysfs.sh --test tests/card/guest_p2p.c
			# A machine has no room for the memory of two large ones.
			step card-trn3 with_card tests/vm/run.sh 6.12 --stack --card trn3:64 \
				--log card-trn3 --test tests/card/guest_driver.c \
				--test tests/card/guest_copy.c --test tests/card/guest_sysfs.sh \
				--test tests/card/guest_metric.c
			step card-faults with_card tests/vm/run.sh 6.12 --stack --card trn2 \
				--log card-faults --timeout 1200 --test-timeout 600 \
				--test tests/card/guest_faults.c --test tests/card/guest_metric.c
			step card-shell with_card tests/vm/shell.py card ;;
	card-suites)	step card-suites on_card card-suites 6.12 trn2:64 grow notify \
				zerocopy eventfd nrt_dump async dmabuf driver mmap nrt_async \
				nrt_life profile refusals regs rings vendor_bugs caps charge \
				datastore dma_compute events fdinfo foreign neff_compute neuron_api \
				owners statistics trace ;;
	card-demo)	step card-demo with_card env CARD=trn2 tests/demo.sh ;;
	card-all)	step card-all on_card card-all 6.12 trn2:64 compat death dmabuf_sync \
				ioctl_hostile move neuron_group process reset vendor_table \
				crwl examples hbm_ranges lnc2 load_cycles mem_owners \
				neuron_compute neuron_pools neuron_share nrt_cc nrt_dmabuf \
				nrt_host nrt_hosts nrt_kill report scrub
			step card-two with_card tests/vm/run.sh 6.12 --stack --mem 1536 \
				--card trn1 --card inf2 --log card-two --test tests/card/guest_two.c
			# An emulated processor has addresses for 1 TiB: no room for all of BAR 4.
			step card-16 with_card tests/vm/run.sh 6.12 --stack --mem 1536 \
				"${sixteen[@]}" --log card-16 --test tests/card/guest_sixteen.sh
			step card-bars with_card tests/vm/run.sh 6.12 --stack \
				--card trn2:0:1024 --card trn2:0:none --card trn1:0:1024 \
				--card trn2:0:1024:1024 --log card-bars --test tests/card/guest_bars.sh
			step card-sleep with_card tests/vm/run.sh 6.12 --stack --card trn2 \
				--log card-sleep --test tests/card/guest_sleep.sh
			step card-killed with_card tests/vm/run.sh 6.12 --stack --mem 1536 \
				--card trn1 --card inf2 --card trn2:0:1024 --log card-killed \
				--test tests/card/guest_killed.c
			step card-iommu with_card tests/vm/run.sh 6.12 --stack --iommu --mem 1536 \
				--card trn2:64 --log card-iommu --test tests/card/guest_driver.c \
				--test tests/card/guest_copy.c
			step card-run-on with_card tests/vm/run.sh 6.12 --stack --iommu --mem 1536 \
				--card trn2:64 --log card-run-on --test tests/card/guest_run_on.c
			step card-fuzz with_card tests/vm/run.sh 6.12 --stack --mem 2048 \
				--card trn2:64 --log card-fuzz --test-timeout 600 \
				--append "fuzz.seconds=120 fuzz.seed=$seed" \
				--test tests/card/guest_load.sh --test tests/card/guest_programs.sh \
				"${fuzzer[@]}" --test tests/vm/guest/zz-unload.sh
			step card-iommu-two with_card tests/vm/run.sh 6.12 --stack --iommu --mem 1536 \
				--card trn1 --card trn2:64 --log card-iommu-two \
				--test tests/card/guest_two.c
			step card-loads with_card tests/vm/run.sh 6.12 --stack --mem 1536 --card trn1 \
				--card inf2 --card trn2 --card trn3:0:1024 --append card.loads=20 \
				--log card-loads \
				--test tests/card/guest_driver.c
			step card-6.1 on_card card-6.1 6.1 trn2:64 death driver dmabuf mmap \
				nrt_life process regs rings
			step card-7.3 on_card card-7.3 7.3 trn2:64 death driver dmabuf mmap \
				nrt_life process regs rings ;;
	card-debug)	step card-own card_own
			step card-debug card_debug debug
			step card-7.3-debug card_debug 7.3-debug ;;
	build-clang)	step build-clang env LLVM=1 tests/vm/randconfig.sh 2 ;;
	randconfig)	step randconfig tests/vm/randconfig.sh ;;
	series)		step series tests/series/check.sh ;;
	build-*)	step "$1" build_modules "${1#build-}" ;;
	uml-kunit)	step uml-kunit tests/uml/run.sh --log kunit-uml ;;
	vm-kunit)	step vm-kunit kunit_vm debug ;;
	rig)		step rig tests/vm/selftest.sh short ;;
	rig-all)	step rig-all tests/vm/selftest.sh ;;
	vm-debug)	only=$concurrent step vm-debug stack debug ;;
	vm-debug-all)	step vm-debug-all stack debug --timeout 7200 ;;
	vm-6.1|vm-7.3)	only=$kernel_dependent step "$1" stack "${1#vm-}" ;;
	vm-card-like)	only=$card_like step vm-card-like stack 6.12 --log vm-card-like \
				--append neuron_emu.card_like=1 ;;
	vm-card-like-all)
			step vm-card-like-all stack uml --log vm-card-like-all \
				--append neuron_emu.card_like=1 ;;
	vm-checked)	only=$hostile step vm-checked stack uml --log vm-checked \
				--append neuron_emu.checks=0
			only=$trusted step vm-trusted stack uml --log vm-trusted \
				--append "neuron_emu.checks=0 neuron.isolation=trusted" ;;
	vm-*-all)	kernel=${1#vm-}
			step "$1" stack "${kernel%-all}" --log "$1" ;;
	vm-7.3-debug)	step vm-7.3-debug stack 7.3-debug --test-timeout 1800 --timeout 7200 ;;
	vm-6.12)	but=$not_in_6_12 step vm-6.12 stack 6.12 ;;
	vm-uml)		but=$not_in_uml step vm-uml stack uml ;;
	vm-*)		step "$1" stack "${1#vm-}" ;;
	arm64)		step arm64-kunit kunit_vm arm64 --timeout 3600 --test-timeout 3000
			step arm64-64k-kunit kunit_vm arm64-64k --timeout 3600 --test-timeout 3000
			step arm64 arm64_guest arm64 "${arm64[@]}"
			step arm64-64k arm64_guest arm64-64k "${arm64_pages[@]}"
			step arm64-6.12 arm64_guest arm64-6.12 "${arm64[@]}" "${arm64_library[@]}"
			step arm64-demo env KERNEL=arm64-6.12 tests/demo.sh ;;
	kcsan)		step kcsan-rig tests/vm/selftest.sh race
			step kcsan-kunit kunit_vm kcsan --timeout 3600 --test-timeout 3000
			step kcsan stack kcsan --timeout 7200 --test-timeout 1800 ;;
	kmsan)		step kmsan-rig tests/vm/selftest.sh uninit
			step kmsan-kunit kunit_vm kmsan --mem 4096 --timeout 3600 --test-timeout 3000
			only=$handed_out step kmsan stack kmsan --mem 6144 --timeout 10800 \
				--test-timeout 2400 ;;
	coverage-lib)	step coverage-lib make -s -C tests/lib coverage-lib ;;
	coverage-vm)	step coverage-run stack debug --make NEURON_GCOV=1 --test tests/vm/gcov.sh
			step coverage-vm tests/vm/coverage.sh "$CACHE/logs/stack-debug/output.log"
			grep -v '^ok' "$logs/coverage-vm.log" ;;
	pairs)		step pairs pairs
			grep '^#' "$logs/pairs.log" ;;
	fuzz-ioctl)	step fuzz-ioctl fuzz_ioctl
			grep '^#' "$logs/fuzz-ioctl.log" ;;
	demo)		step demo tests/demo.sh ;;
	*)		step "$1" echo "not ok - there is no such step, but: ${steps[*]} ${long_steps[*]}" ;;
	esac
}

[ $# -gt 0 ] || set -- "${steps[@]}"

if ! tests/deps.sh build test vm dkms; then
	echo "0 passed, 1 failed"
	exit 1
fi
# Kernels first, where their progress can be seen; the steps then find them. A
# kernel that cannot be made fails the steps that need it.
needed=$(for name; do
	case $name in
	build-clang)			;;
	build-*)			echo "${name#build-}" ;;
	uml-kunit)			echo uml ;;
	rig|rig-all)			echo debug uml ;;
	vm-kunit|vm-debug|pairs)	echo debug ;;
	kcsan|kmsan)			echo "$name" ;;
	arm64)				echo arm64 arm64-64k arm64-6.12 ;;
	coverage-vm)			echo debug ;;
	vm-card-like)			echo 6.12 ;;
	vm-checked|vm-card-like-all)	echo uml ;;
	card-all)			echo 6.1 6.12 7.3 ;;
	card-debug)			echo debug 7.3-debug ;;
	vm-*-all)			name=${name#vm-}
					echo "${name%-all}" ;;
	fuzz-ioctl)			echo fuzz ;;
	vm-*)				echo "${name#vm-}" ;;
	tools|deb-12)			echo 6.1 6.12 ;;
	abi|bench|dkms|demo|rtd-guest|shell|card|card-suites|card-demo) echo 6.12 ;;
	esac
done | tr " " "\n" | sort -u)
for kernel in $needed; do
	tests/vm/kernels.sh "$kernel" || say "kernel $kernel is not available"
done

# Steps that boot a guest, or build a root of their own.  User Mode Linux is a program that
# uses one processor.
has_guest() {
	case $1 in
	vm-uml|vm-uml-all|vm-checked|vm-card-like-all|uml-*) return 1 ;;
	vm-*|rig|rig-all|bench|demo|rtd-guest|shell|card|card-*|arm64|kcsan|kmsan|coverage-vm|pairs|fuzz-ioctl|debian-*|deb-*|image|image-*|slurm) return 0 ;;
	esac
	return 1
}

guests_at_a_time() {
	local memory
	memory=$(awk '/^MemAvailable:/ { print int($2 / 1048576) }' /proc/meminfo)

	if [ "$JOBS" -ge 2 ] && [ "${memory:-0}" -ge 8 ]; then
		echo 2
	else
		echo 1
	fi
}

# lane QUEUE...: takes the next step from the first queue that has one, until there is none.
lane() {
	local queue name

	for queue; do
		while name=$(flock "$results" sed -i -e '1w /dev/stdout' -e 1d "$queue") && [ -n "$name" ]; do
			run_step "$name"
			echo "$name" >>"$ended"
		done
	done
}

set -m
for name; do
	if has_guest "$name"; then
		echo "$name" >>"$guests"
	else
		echo "$name" >>"$hosts"
	fi
done
lane "$hosts" "$guests" &
lanes+=($!)
for _ in $(seq "${GUESTS:-$(guests_at_a_time)}"); do
	lane "$guests" "$hosts" &
	lanes+=($!)
done
wait
lanes=()
# Whatever became of a lane: its steps have not passed.
for name; do
	grep -qxF -e "$name" "$ended" || echo "$name 0 1 0 0" >>"$results"
done

echo "# step          passed failed seconds   cpu"
sort -k4,4nr "$results" | awk '{ printf "# %-14s %6d %6d %7d %5d\n", $1, $2, $3, $4, $5 }'
failures=$(awk '$3 { print $1 }' "$results")
for name in $failures; do
	echo "failed: $name"
	excerpt "$name"
done
echo "# $((SECONDS - began)) s, logs in $logs"
awk '{ p += $2; f += $3 } END { print p + 0 " passed, " f + 0 " failed"; exit f > 0 || !p }' "$results"
