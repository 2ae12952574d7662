#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Boot a kernel of the cache in QEMU and run tests in it. KERNEL may be a directory, in which
# a kernel was built for x86-64 (a slash tells it from a name), with all that the guest
# needs built in: configs/debug.config and common.config say what that is.
#
# usage: run.sh KERNEL [options]
#   --stack		build and install the project: modules, library, tools
#   --make ARG		with --stack, for the build of the modules (NEURON_GCOV=1)
#   --module FILE	add a module (modprobe finds it)
#   --modules DIR	add all modules of a directory
#   --test FILE		add a test: an executable or script, or a C file, which
#			is compiled; tests run in the order given
#   --file SRC[:DST]	add a file, with the libraries it needs
#   --append ARGS	add to the kernel command line
#   --timeout SECONDS	for the whole run (600)
#   --test-timeout SECONDS	for each test (300)
#   --mem MB		memory of the guest (1024)
#   --cpu MODEL		processor of the guest (max, without what QEMU gets wrong)
#   --no-leaks		leave out the leak scan of the debug kernel
#   --plugin FILE,ARG=...	of QEMU
#   --card KIND[:MIB[:BAR4[:BAR0]]]
#			add a model of a card (trn1, inf2, trn2, trn3), with a pattern in
#			the first MIB of each HBM, and BARs of BAR4 and BAR0 MiB, or "none";
#			its complaints fail the run
#   --iommu		put cards behind a virtual IOMMU that maps page by page, and
#			unmaps at once: DMA to what is not mapped is a complaint
#   --stream		show the tests' output while they run
#   --log NAME		where to keep the output below $CACHE/logs
#   --accel ACCEL	of QEMU (tcg,thread=multi)
#   --shell DIR		no tests but a shell, with this directory as /shared; succeeds
#			if the shell has ended by itself
#
# What an arm64 guest has is cross-built, or from Debian's packages for arm64.
#
# Fails unless the guest's init has delivered a complete verdict, every test and
# every check in it passed, and the kernel log holds no complaint. The last line
# on standard output is "# KERNEL: N passed, N failed"; when something failed, a
# line "# reason: WORD" precedes it.

set -eu -o pipefail
. "$(dirname "$0")/lib.sh"

kernel=
stack=0 stream=0 iommu=0
timeout=600 test_timeout=300 mem=1024 cpu=
append='' log='' leaks=1 accel=tcg,thread=multi shell='' machine=pc emulator=qemu-system-x86_64
modules=() tests=() files=() make_args=() qemu_args=() cards=()

while [ $# -gt 0 ]; do
	case $1 in
	--stack)	stack=1 ;;
	--make)		make_args+=("$2"); shift ;;
	--module)	modules+=("$2"); shift ;;
	--modules)	for m in "$2"/*.ko; do modules+=("$m"); done; shift ;;
	--test)		tests+=("$2"); shift ;;
	--file)		files+=("$2"); shift ;;
	--append)	append="$append $2"; shift ;;
	--timeout)	timeout=$2; shift ;;
	--test-timeout)	test_timeout=$2; shift ;;
	--mem)		mem=$2; shift ;;
	--cpu)		cpu=$2; shift ;;
	--no-leaks)	leaks=0 ;;
	--plugin)	qemu_args+=(-plugin "$2"); shift ;;
	--card)		cards+=("$2"); shift ;;
	--iommu)	iommu=1 append="$append intel_iommu=on iommu.strict=1" ;;
	--stream)	stream=1 ;;
	--log)		log=$2; shift ;;
	--accel)	accel=$2; shift ;;
	--shell)	shell=$2 stack=1; shift ;;
	-*)		die "unknown option $1" ;;
	*)		[ -z "$kernel" ] || die "two kernels: $kernel, $1"; kernel=$1 ;;
	esac
	shift
done
[ -n "$kernel" ] || die "usage: run.sh KERNEL [options]; see the head of this file"

image=$("$ROOT/tests/vm/kdir.sh" "$kernel" image)
release=$("$ROOT/tests/vm/kdir.sh" "$kernel" release)
kernel_modules=$("$ROOT/tests/vm/kdir.sh" "$kernel" modules)

logs=$CACHE/logs/${log:-${kernel##*/}-$$}
mkdir -p "$CACHE/tmp" "$logs"
rm -f "$logs"/*
find "$CACHE/logs" -maxdepth 1 -name '*-[0-9]*' -mtime +1 -exec rm -rf {} +
staging=$(mktemp -d "$CACHE/tmp/guest.XXXXXX")
card_pids=()
trap 'kill "${card_pids[@]}" 2>/dev/null || :; rm -rf "$staging"' EXIT
root=$staging/root

# ---- what goes into the guest ------------------------------------------------------

mkdir -p "$root"/{bin,dev,etc,proc,run,sys,tests,tmp,usr/bin,usr/sbin,var}
ln -s bin "$root/sbin"
# The programs and libraries of the guest are of this machine, or of packages of another one.
sysroot='' cc=(gcc) make_lib=()
if [[ $kernel == arm64* ]]; then
	mapfile -t packages < <("$ROOT/tests/deps.sh" print build | grep -e '-dev$')
	sysroot=$("$ROOT/tests/root.sh" unpack arm64 busybox-static dash kmod udev systemd \
		"${packages[@]}")
	cc=(aarch64-linux-gnu-gcc "--sysroot=$sysroot")
	make_lib=("CC=${cc[*]}" "B=$CACHE/build/lib-arm64-$(echo "$ROOT" | sha256sum | cut -c1-12)")
	export PKG_CONFIG_SYSROOT_DIR=$sysroot
	export PKG_CONFIG_LIBDIR=$sysroot/usr/lib/aarch64-linux-gnu/pkgconfig
fi
# Where the guest's programs come from: program NAME
program() {
	if [ -z "$sysroot" ]; then
		command -v "$1"
	else
		find "$sysroot"/{,usr/}{bin,lib/systemd} -maxdepth 1 -name "$1" -print -quit
	fi
}
cp "$(program busybox)" "$root/bin/busybox"
# 270 times, without a program for each.
busybox --list | bin=$root/bin perl -nle 'symlink "busybox", "$ENV{bin}/$_"'
echo 'root:x:0:0:root:/root:/bin/sh' >"$root/etc/passwd"
echo 'nobody:x:65534:65534:nobody:/:/bin/sh' >>"$root/etc/passwd"
printf 'root:x:0:\nnogroup:x:65534:\n' >"$root/etc/group"

mkdir -p "$CACHE/bin"
init=$CACHE/bin/init-${cc[0]}-$(sha256sum <"$ROOT/tests/vm/init.c" | cut -c1-10)
if [ ! -e "$init" ]; then
	"${cc[@]}" -O2 -Wall -Wextra -static -o "$init.$$" "$ROOT/tests/vm/init.c"
	mv "$init.$$" "$init"
fi
cp "$init" "$root/init"

# The same of another architecture, whose loader does not run here.
add_needed_libraries() {
	local name file

	readelf -d "$1" 2>/dev/null | sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p' | while read -r name; do
		file=$(find "$sysroot"/lib "$sysroot"/{,usr/}lib/aarch64-linux-gnu{,/systemd} -maxdepth 1 \
			-name "$name" 2>/dev/null | head -n 1)
		[ -n "$file" ] && [ ! -e "$root${file#"$sysroot"}" ] || continue
		install -D "$file" "$root${file#"$sysroot"}"
		add_needed_libraries "$file"
	done || true
}

# The shared libraries of a program, at the places where it looks for them.
add_libraries() {
	local file

	if [ -n "$sysroot" ]; then
		add_needed_libraries "$1"
		return
	fi
	ldd "$1" 2>/dev/null | grep -o '/[^ ]*' | while read -r file; do
		[ -e "$root$file" ] || install -D "$file" "$root$file"
	done || true
}

add_file() {
	local source=${1%%:*} target=${1#*:}

	[ "$target" != "$1" ] || target=/${source##*/}
	[ -z "$sysroot" ] || source=$(program "${source##*/}")
	mkdir -p "$root/${target%/*}"
	cp -rL "$source" "$root/$target"
	[ -d "$source" ] || add_libraries "$source"
}

# kmod's modprobe, not busybox's: it is what people have. Busybox's shell would run
# applets of its own before it looks for programs, so that the shell is dash.
rm -f "$root"/bin/{modprobe,insmod,rmmod,lsmod,modinfo,depmod,sh,ash}
for name in kmod dash; do
	cp "$(program $name)" "$root/bin/$name"
	add_libraries "$root/bin/$name"
done
for name in modprobe insmod rmmod lsmod modinfo; do
	ln -s kmod "$root/bin/$name"
done
ln -s dash "$root/bin/sh"

module_dir=$root/lib/modules/$release
mkdir -p "$module_dir/updates"
if [ -n "$kernel_modules" ]; then
	cp "$kernel_modules"/modules.{builtin,builtin.modinfo,order} "$module_dir"
fi

# A module of the kernel itself, and what that one needs.
add_kernel_module() {
	local name=${1//-/_} file

	[ -n "$kernel_modules" ] || return 0
	file=$(find "$kernel_modules/kernel" -name "${name//_/[-_]}.ko*" | head -n 1)
	# Not there: built in.
	[ -n "$file" ] || return 0
	[ ! -e "$module_dir/kernel/${file##*/}" ] || return 0
	install -D "$file" "$module_dir/kernel/${file##*/}"
	add_needed "$file"
}

add_needed() {
	local name

	for name in $(modinfo -F depends "$1" | tr ',' ' '); do
		add_kernel_module "$name"
	done
}

make -s -C "$ROOT" install-config DESTDIR="$root" PREFIX=/usr
if [ $stack = 1 ]; then
	built=$("$ROOT/tests/vm/modules.sh" "$kernel" "${make_args[@]}")
	for m in "$built"/*.ko; do
		modules+=("$m")
	done
	make_here . lib "${make_lib[@]}" >"$logs/lib.log" 2>&1 &&
	make_here . install "${make_lib[@]}" DESTDIR="$root" PREFIX=/usr >>"$logs/lib.log" 2>&1 || {
		tail -n 40 "$logs/lib.log" >&2
		die "the library does not build"
	}
	# A test compares what they show.
	install -D -m 644 -t "$root/usr/share/doc/libneuron" "$ROOT"/libneuron/docs/*.md
	# The examples, as somebody with the installed library would compile them.
	mkdir -p "$root/usr/libexec/neuron"
	for file in "$root"/usr/share/doc/libneuron/examples/*.c; do
		read -r -a flags <<<"$(PKG_CONFIG_PATH=$root/usr/lib/pkgconfig \
			PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_ALLOW_SYSTEM_LIBS=1 \
			PKG_CONFIG_ALLOW_SYSTEM_CFLAGS=1 pkg-config --cflags --libs nrt neuron)"
		"${cc[@]}" -Wall -Wextra -Werror -o "$root/usr/libexec/neuron/$(basename "$file" .c)" \
			"$file" "${flags[@]}" -Wl,-rpath-link,"$root/usr/lib"
	done
	for file in "$root"/usr/bin/* "$root"/usr/lib/*.so*; do
		[ ! -f "$file" ] || LD_LIBRARY_PATH=$root/usr/lib add_libraries "$file"
	done
	rm -rf "${root:?}/$CACHE"
fi
# Without what debuggers read, nine tenths of a file, as DKMS and packages install them: each load
# would read it.
for m in "${modules[@]}"; do
	"${cc[0]/%gcc/strip}" -g -o "$module_dir/updates/${m##*/}" "$m"
	add_needed "$m"
done
add_kernel_module configfs
depmod -b "$root" "$release" 2>"$logs/depmod.log" || die "depmod: $(cat "$logs/depmod.log")"

for file in "${files[@]}"; do
	add_file "$file"
done

if [ -n "$shell" ]; then
	install "$ROOT/tests/vm/shell-init.sh" "$root/init"
	add_file "$(command -v bash)":/bin/bash
	for name in 9p 9pnet_virtio virtio_pci; do
		add_kernel_module $name
	done
	depmod -b "$root" "$release"
	terminfo=$(find /etc/terminfo /lib/terminfo /usr/share/terminfo -path "*/${TERM:-none}" 2>/dev/null | head -n 1)
	# Its LANG; without it programs would print ASCII.
	add_file /usr/lib/locale/C.utf8:/usr/lib/locale/C.utf8
	[ -z "$terminfo" ] || add_file "$terminfo:/lib/terminfo/${TERM:0:1}/$TERM"
fi

flags=(-O1 -g -std=gnu11 -Wall -Wextra -Werror -pthread -I"$ROOT/uapi" -I"$ROOT/uapi/share"
       -I"$ROOT/libneuron/include")
# The guest sorts by name.
number=100
for file in "${tests[@]}"; do
	name=${file##*/}
	target=$root/tests/$number-$name
	case $file in
	*.c)
		target=${target%.c}
		libs=()
		[ ! -e "$root/usr/lib/libneuron.so.0" ] || libs+=(-lneuron -ljansson)
		[ ! -e "$root/usr/lib/libnrt.so.1" ] || libs+=(-lnrt)
		# In two steps: what is compiled is in ccache.
		"${cc[@]}" "${flags[@]}" -c -o "$staging/test.o" "$file"
		"${cc[@]}" -pthread -o "$target" "$staging/test.o" -L"$root/usr/lib" \
			-Wl,-rpath-link,"$root/usr/lib" -Wl,--as-needed "${libs[@]}" -lm
		;;
	*)	cp -L "$file" "$target" ;;
	esac
	chmod +x "$target"
	LD_LIBRARY_PATH=$root/usr/lib add_libraries "$target"
	rm -rf "${root:?}/$CACHE"
	number=$((number + 1))
done

[[ $kernel == uml* ]] ||
	(cd "$root" && find . | cpio --quiet -o -H newc -R 0:0 >"$staging/initrd")

# ---- the run -----------------------------------------------------------------------

# Generous limits for a loaded machine: a lock-up is one at any speed, and the check
# of the timer at boot takes a slow emulator for a broken board.
cmdline="console=ttyS0,115200 no_timer_check panic=-1 oops=panic panic_on_warn=1 mitigations=off"
cmdline+=" watchdog_thresh=30 rcupdate.rcu_cpu_stall_timeout=120"
cmdline+=" sysctl.kernel.softlockup_panic=1 sysctl.kernel.hung_task_panic=1"
cmdline+=" sysctl.kernel.panic_on_rcu_stall=1 kmemleak=on"
# Memory that is freed while somebody still has it is a warning there.
case $kernel in
debug|uml|arm64*) cmdline+=" neuron.check_users=1" ;;
esac
# A case of KUnit takes minutes there, in which the thread that started it sleeps.
[ "$kernel" != kmsan ] || cmdline+=" sysctl.kernel.hung_task_timeout_secs=1200"
# The rest of the kernel has data races, too: complaint() tells whose they are.
[ "$kernel" != kcsan ] || cmdline+=" panic_on_warn=0"
cmdline+=" rig.timeout=$test_timeout rig.leaks=$leaks rig.time=$(date +%s)$append"

# cmpxchg16b of QEMU 7.2 leaves half of an address in the flags: an interrupt before the next
# arithmetic then returns to a mode that there is not, a double fault in the middle of kmalloc().
# An emulated "rep movsb" moves one byte at a time: let the kernel use its other loops.
if [ -z "$cpu" ]; then
	cpu=max
	[[ $kernel == arm64* ]] || cpu+=,-cx16,-erms,-fsrm
fi

# A card is a process of its own, which sees the guest's memory.
if [ ${#cards[@]} != 0 ]; then
	emulator=$("$ROOT/tests/card/qemu.sh")
	machine=q35,memory-backend=mem
	qemu_args+=(-object "memory-backend-memfd,id=mem,size=${mem}M,share=on")
	[ $iommu = 0 ] || qemu_args+=(-device "intel-iommu,caching-mode=on,aw-bits=48")
	logged "$logs/card.log" make_here tests/card
fi
for i in "${!cards[@]}"; do
	IFS=: read -r kind dirty bar4 bar0 <<<"${cards[i]}"
	"$ROOT/tests/card/build/neuron-card" -k "$kind" -r "$i" -d "${dirty:-0}" -4 "${bar4:-0}" \
		-0 "${bar0:-0}" "$staging/card$i" 2>"$logs/card$i.log" &
	card_pids+=($!)
	until [ -S "$staging/card$i.control" ]; do
		kill -0 $! || die "the card does not start; see $logs/card$i.log"
		sleep 0.1
	done
	say "card $i: ${cards[i]}, figures and faults at $staging/card$i.control"
	qemu_args+=(-device "{\"driver\":\"vfio-user-pci\",\"socket\":{\"type\":\"unix\",\"path\":\"$staging/card$i\"}}")
done

# Its serial ports: the kernel's log, the output, the verdict.
serial=(-serial "file:$logs/console.log" -serial chardev:out -serial "file:$logs/verdict.log")
if [[ $kernel == arm64* ]]; then
	emulator=qemu-system-aarch64 machine=virt
	cmdline=${cmdline/ttyS0,115200/ttyAMA0}
	serial=(-serial "file:$logs/console.log" -chardev "null,id=none0" -chardev "null,id=none3"
		-chardev "file,id=verdict,path=$logs/verdict.log"
		-device "pci-serial-4x,chardev1=none0,chardev2=out,chardev3=verdict,chardev4=none3")
fi
qemu=("$emulator" -nodefaults -no-user-config -display none
      -machine "$machine" -accel "$accel" -cpu "$cpu" -smp 2 -m "$mem" -no-reboot
      -kernel "$image" -initrd "$staging/initrd"
      "${serial[@]}")
if [ -n "$shell" ]; then
	read -r rows columns < <(stty size 2>/dev/null || echo 24 80)
	status=0
	"${qemu[@]}" "${qemu_args[@]}" \
		-append "console=ttyS0,115200 no_timer_check panic=-1 quiet mitigations=off TERM=${terminfo:+$TERM} ROWS=$rows COLS=$columns" \
		-virtfs "local,path=$shell,mount_tag=shared,security_model=none,multidevs=remap" \
		-chardev stdio,id=out,signal=off \
		2>"$logs/qemu.log" || status=$?
	grep -q '^done' "$logs/verdict.log" ||
		{ cat "$logs/qemu.log" >&2; die "the guest ended without its shell (QEMU status $status); see $logs"; }
	exit 0
fi
if [ $stream = 1 ]; then
	output=(-chardev "stdio,id=out,signal=off,logfile=$logs/output.log")
else
	output=(-chardev "file,id=out,path=$logs/output.log")
fi
: >"$logs/verdict.log"
started=$SECONDS
status=0
if [[ $kernel == uml* ]]; then
	# Its root is the staging directory on the host; nothing else is visible.
	read -r -a arguments <<<"${cmdline/console=ttyS0,115200/}"
	timeout -k 5 "$timeout" "$image" mem="${mem}M" \
		root=none rootfstype=hostfs rootflags="$root" rw init=/init \
		con0=null,fd:1 con=null ssl1=null,fd:3 ssl2=null,fd:4 \
		"${arguments[@]}" rig.off=1 \
		</dev/null >"$logs/console.log" 2>"$logs/qemu.log" \
		3>"$logs/output.log" 4>"$logs/verdict.log" &
	# Its guest processes are processes here: after a crash, end what is left
	# of the group that timeout made.
	group=$!
	wait $group || status=$?
	kill -KILL -- -$group 2>/dev/null || true
else
	# The emulator can trip over code that the kernel patches while it boots (int3 in
	# sched_clock_cpu()), long before the first program: that says nothing about us.
	for try in 1 2; do
		status=0
		timeout --foreground -k 5 "$timeout" "${qemu[@]}" -append "$cmdline" \
			"${output[@]}" "${qemu_args[@]}" \
			</dev/null 2>"$logs/qemu.log" || status=$?
		if [ $status = 124 ] || [ ${#cards[@]} != 0 ] ||
		   grep -q 'Run /init as init process' "$logs/console.log"; then
			break
		fi
		say "$kernel: did not come to its first program (try $try)"
	done
fi

# ---- judgement ---------------------------------------------------------------------

passed=0 failed=0 reason=''

# fail REASON TEXT: the first reason is the one reported.
fail() {
	failed=$((failed + 1))
	[ -n "$reason" ] || reason=$1
	echo "not ok - $kernel: $2"
}

# The kernel's log, without what is not ours: when two threads take pages of a process away at a
# time, one of them for a device that goes, flush_tlb_mm() of User Mode Linux 6.12 walks the VMAs of
# that process without its lock.  Locks are checked further after such a report.
kernel_log() {
	tr -d '\r' <"$logs/console.log" | awk -v kernel="$kernel" '
		/suspicious RCU usage/ { if (rest) print held; held = $0; rest = 80; next }
		rest && kernel == "uml" && / flush_tlb_mm\+0x/ { rest = 0; next }
		rest && !--rest { print held }
		{ print }
		END { if (rest) print held }'
}

# What the kernel complained about, by its first line of complaint. A data race is
# ours if a module took part: the kernels that look for races have only ours.  Not ours are the
# flags of a page that is taken twice, and a node of a maple tree that is read under RCU.
complaint() {
	awk '
		/KCSAN: data-race in (__get_user_pages \/ folio_mark_accessed|__call_rcu_common.* \/ mtree_load)$/ { next }
		/BUG: KCSAN:/				{ race = $0; next }
		race && /\+0x[0-9a-f]+\/0x[0-9a-f]+ \[[a-z]/ { print "kcsan: " race; exit }
		race && /==========/				{ race = "" }
		/BUG: KASAN:/				{ print "kasan: " $0; exit }
		/BUG: KMSAN:/				{ print "kmsan: " $0; exit }
		/UBSAN:/				{ print "ubsan: " $0; exit }
		/possible circular locking|possible recursive locking|inconsistent lock state|possible irq lock inversion|HARDIRQ-safe -> HARDIRQ-unsafe|SOFTIRQ-safe -> SOFTIRQ-unsafe|bad unlock balance|suspicious RCU usage|lock held when returning|still has locks held|held lock freed|Invalid wait context|nested lock was not taken|DEBUG_LOCKS_WARN_ON|BUG: MAX_LOCK|INFO: trying to register non-static key/ { print "lockdep: " $0; exit }
		/BUG: sleeping function called|BUG: scheduling while atomic/ { print "atomic-sleep: " $0; exit }
		/unreferenced object|kmemleak: .*new suspected memory leaks/ { print "kmemleak: " $0; exit }
		/BUG: soft lockup|soft lockup - CPU/	{ print "soft-lockup: " $0; exit }
		/hard LOCKUP/				{ print "hard-lockup: " $0; exit }
		/INFO: task .* blocked for more than/	{ print "hung-task: " $0; exit }
		/rcu: INFO: .*stall|detected stalls? on CPUs|self-detected stall/ { print "rcu-stall: " $0; exit }
		/BUG: workqueue lockup/			{ print "workqueue-lockup: " $0; exit }
		/Invalid ELF header magic/		{ print "module: " $0; exit }
		/ODEBUG:/				{ print "odebug: " $0; exit }
		/refcount_t:/				{ print "refcount: " $0; exit }
		/(list_add|list_del) corruption/	{ print "list: " $0; exit }
		/BUG: unable to handle|BUG: kernel NULL pointer|general protection fault|Oops:|kernel BUG at|invalid opcode/ { print "oops: " $0; exit }
		/WARNING: /				{ print "warn: " $0; exit }
		/BUG:/					{ print "bug: " $0; exit }
		/Out of memory:|oom-kill:/		{ print "guest-memory: " $0; exit }
		/Kernel panic/				{ print "panic: " $0; exit }' < <(kernel_log)
}

verdict=$(tr -d '\r' <"$logs/verdict.log")
said=$(complaint)
if [ -n "$said" ]; then
	fail "${said%%: *}" "kernel log: ${said#*: }"
fi
if ! grep -qx 'done' <<<"$verdict"; then
	if [ $status = 124 ] || [ $status = 137 ]; then
		fail timeout "the guest was still running after $timeout s"
	else
		fail no-verdict "the guest ended without a verdict (QEMU status $status)"
	fi
elif [ -z "$said" ]; then
	passed=$((passed + 1))
fi

# A card ends with its machine.
for i in "${!card_pids[@]}"; do
	if wait "${card_pids[i]}"; then
		passed=$((passed + 1))
	else
		fail card "card $i: $(grep -m 1 complaint "$logs/card$i.log" || tail -n 1 "$logs/card$i.log")"
	fi
done

planned=$(sed -n 's/^plan //p' <<<"$verdict")
ran=$(grep -c '^test ' <<<"$verdict" || true)
if [ "${planned:-${#tests[@]}}" != "${#tests[@]}" ]; then
	fail plan "${#tests[@]} tests given, the guest found $planned"
fi
if [ "$ran" != "${#tests[@]}" ]; then
	fail missing "$((${#tests[@]} - ran)) of ${#tests[@]} tests did not finish"
fi

while read -r kind name result ok not_ok seconds; do
	case $kind in
	test)
		# A test without points of its own counts as one.
		if [ "$result" = 0 ] && [ "$not_ok" = 0 ]; then
			[ "$ok" != 0 ] || ok=1
			passed=$((passed + ok))
			echo "ok - $kernel: $name ($ok points, $seconds s)"
		else
			passed=$((passed + ok))
			[ "$not_ok" != 0 ] || not_ok=1
			failed=$((failed + not_ok - 1))
			fail "test" "$name: status $result, $not_ok of $((ok + not_ok)) points failed"
		fi ;;
	check)
		if [ "$result" = pass ]; then
			passed=$((passed + 1))
		else
			fail "$name" "check $name: $ok $not_ok $seconds"
		fi ;;
	esac
done <<<"$verdict"

if [ $failed != 0 ]; then
	echo "# --- tests' output, $logs/output.log:"
	tr -d '\r' <"$logs/output.log" | grep -E '^not ok' | head -n 30 | sed 's/^/# /' || true
	tail -n 25 "$logs/output.log" | tr -d '\r' | sed 's/^/# /'
	echo "# --- kernel log, $logs/console.log:"
	if [ -n "$said" ]; then
		tr -d '\r' <"$logs/console.log" | grep -F -A45 -e "${said#*: }" | head -n 60 | sed 's/^/# /' || true
	else
		tail -n 25 "$logs/console.log" | tr -d '\r' | sed 's/^/# /'
	fi
	[ ! -s "$logs/qemu.log" ] || sed 's/^/# qemu: /' "$logs/qemu.log"
	# Where it was, in one line: of a run elsewhere only the last lines may be kept.
	[ -z "$said" ] || tr -d '\r' <"$logs/console.log" | grep -F -A90 -e "${said#*: }" | awk '
		{ sub(/^\[[ 0-9.]+\] */, "") }
		/usage!/ { out = out " " $0 }
		match($0, /Comm: [^ ]+/) { out = out " " substr($0, RSTART, RLENGTH) }
		/\+0x[0-9a-f]+\/0x/ && !/print|show_stack|dump_|um_set_signals/ {
			gsub(/.*\] |\? |\+0x.*/, "")
			if (!seen[$0]++ && n++ < 50)
				out = out " " $0
		}
		END { print "# trace:" out }'
	echo "# reason: $reason"
fi
echo "# $kernel: $((SECONDS - started)) s, log in $logs"
echo "# $kernel: $passed passed, $failed failed"
[ $failed = 0 ]
