#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Build the modules for kernels whose options are drawn by lot: those below that the
# modules, or the headers that they include, depend on. The rest is x86_64_defconfig. The
# kernels are configured and prepared only, so nothing can be linked against them: what is
# tried is that every file compiles, without a warning.
#
# usage: [LLVM=1] randconfig.sh [SEEDS [FIRST]]	(20, from seed 1; LLVM=1: by clang and lld)

set -eu -o pipefail
. "$(dirname "$0")/lib.sh"

seeds=${1:-20}
first=${2:-1}

# Each is off, on, or as the default says.
options=(DEBUG_FS CONFIGFS_FS PROC_FS SYNC_FILE MMU_NOTIFIER USERFAULTFD KVM CGROUPS MEMCG
	 CGROUP_DEVICE CGROUP_DMEM CGROUP_PIDS KALLSYMS SMP NUMA FTRACE PERF_EVENTS PCI PCI_MSI
	 PCI_P2PDMA MEMORY_HOTPLUG SPARSEMEM_VMEMMAP ZONE_DEVICE X86_X32_ABI IA32_EMULATION
	 IOMMU_SUPPORT SWIOTLB_DYNAMIC TRANSPARENT_HUGEPAGE COMPACTION HUGETLBFS PM SUSPEND
	 HIBERNATION JUMP_LABEL MODULE_UNLOAD MODVERSIONS KUNIT FAULT_INJECTION
	 FAULT_INJECTION_DEBUG_FS PROVE_LOCKING DEBUG_LIST DEBUG_ATOMIC_SLEEP DEBUG_SG
	 DMA_API_DEBUG DEBUG_VM DEBUG_OBJECTS UBSAN KASAN PRINTK BUG PREEMPT_DYNAMIC
	 HIGH_RES_TIMERS NET BLOCK SECURITY NAMESPACES PID_NS USER_NS TASK_XACCT SCHED_CORE
	 CC_OPTIMIZE_FOR_SIZE MITIGATION_RETPOLINE MITIGATION_SLS X86_KERNEL_IBT
	 DYNAMIC_DEBUG STACKTRACE RANDOMIZE_BASE INIT_STACK_NONE X86_5LEVEL FRAME_POINTER
	 DRM MODULE_SIG MEMORY_FAILURE)
preemption=(PREEMPT_NONE PREEMPT_VOLUNTARY PREEMPT PREEMPT_RT)

# draw SEED: options by lot, the same ones for the same seed.
draw() {
	local option

	RANDOM=$1
	# Without these there is no module, and some of the others cannot be chosen.
	printf 'CONFIG_%s=y\n' MODULES EXPERT
	for option in "${options[@]}"; do
		case $((RANDOM % 3)) in
		0)	echo "# CONFIG_$option is not set" ;;
		1)	echo "CONFIG_$option=y" ;;
		esac
	done
	echo "CONFIG_${preemption[RANDOM % ${#preemption[@]}]}=y"
}

# What modpost says of modules that cannot be linked.
unlinked='Module\.symvers is missing|undefined!|suppressed [0-9]+ unresolved'

# build SEED
build() {
	local seed=$1 log=$work/$1.log

	: >"$log"
	make -s -C "$source" O="$work/kernel" x86_64_defconfig >>"$log" 2>&1 &&
	draw "$seed" >>"$work/kernel/.config" &&
	make -s -C "$source" O="$work/kernel" olddefconfig >>"$log" 2>&1 &&
	make -s -C "$source" O="$work/kernel" -j"$JOBS" modules_prepare >>"$log" 2>&1 || {
		tail -n 20 "$log"
		echo "not ok - seed $seed: the kernel cannot be prepared"
		return 1
	}
	rsync -a --delete --checksum --include='*/' --include='*.[chS]' --include=Kbuild \
		--include=Makefile --include=VERSION --exclude='*' \
		"$ROOT/kmod" "$ROOT/uapi" "$ROOT/VERSION" "$work/tree/"
	# Without a list of the kernel's symbols all of them are undefined.
	if ! make -s -C "$work/tree/kmod" KDIR="$work/kernel" WERROR=1 KBUILD_MODPOST_WARN=1 \
			-j"$JOBS" >"$log" 2>&1 ||
	   grep -vE "$unlinked" "$log" | grep -qE 'warning:|WARNING:|error:'; then
		grep -vE "$unlinked" "$log" | grep -E -A6 'warning:|WARNING:|error:' | head -n 40
		echo "not ok - seed $seed: the modules do not build without a warning ($log)"
		return 1
	fi
	if ! readelf -p .comment "$work/tree/kmod/neuron.ko" | grep "$compiler" >/dev/null; then
		echo "not ok - seed $seed: the modules are not of $compiler"
		return 1
	fi
	echo "ok - seed $seed"
	sed -n 's/^CONFIG_\(.*\)=[ym]$/\1/p' "$work/kernel/.config" >>"$work/on"
}

"$ROOT/tests/deps.sh" vm
source=$("$ROOT/tests/vm/kernels.sh" --source 6.12)
compiler=GCC
if [ -n "${LLVM:-}" ]; then
	"$ROOT/tests/deps.sh" clang
	compiler=clang
	export LLVM
fi
work=$CACHE/build/randconfig${LLVM:+-clang}
mkdir -p "$work/kernel" "$work/tree"
failed=0
: >"$work/on"
for ((seed = first; seed < first + seeds; seed++)); do
	build "$seed" || failed=$((failed + 1))
done
# Others select some options, and forbid some.
for option in "${options[@]}" "${preemption[@]}" DMA_SHARED_BUFFER TRACEPOINTS; do
	case $(grep -cx "$option" "$work/on") in
	0)		echo "# never on: $option" ;;
	"$seeds")	echo "# never off: $option" ;;
	esac
done
echo "# randconfig: $((seeds - failed)) passed, $failed failed"
[ $failed = 0 ]
