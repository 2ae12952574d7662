#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Kernels for the tests, in the cache outside the tree:
#
#   6.1, 6.12    the distribution's kernels and headers, unpacked
#   7.3, 7.3-rt, 7.3-cloud	those of the next release's backports; rt is PREEMPT_RT,
#                cloud the one for virtual machines
#   debug        6.12 source built with debug.config, common.config and checks.config
#   kcsan, fuzz, kmsan  the same with kcsan.config, fuzz.config or kmsan.config on top, the
#                last one built with clang (minutes; for named commands)
#   uml          6.12 source built as User Mode Linux with uml.config in the place of
#                debug.config, and uml-checks.config on top
#   uml-bench    the same without checks.config and uml-checks.config
#   arm64        6.12 source built for arm64, with arm64.config in the place of debug.config
#   arm64-64k    the same with arm64-64k.config on top: pages of 64 KiB
#   arm64-6.12   the distribution's kernel for arm64, and its headers
#   7.3-debug    7.3 source built as debug, with 7.3-debug.config on top
#
# usage: kernels.sh [--update] NAME...
#        kernels.sh --source SERIES	(prints the directory of the source)
#
# Each kernel is one directory, named by version and by a hash of what it is made
# from. It is made once; "--update" looks for newer packages. The link
# $CACHE/kernels/NAME-HASH names the one in use. Inside:
#
#   kdir         what to pass as KDIR to build modules
#   image        the kernel to boot (bzImage, or the UML program)
#   modules      lib/modules/RELEASE, where the distribution brings modules
#   release      the kernel's release string
#
# Nothing is installed on the machine. A directory counts only with its .complete
# file, written last; one lock per kernel keeps concurrent runs apart.

set -eu -o pipefail
. "$(dirname "$0")/lib.sh"

configs=$ROOT/tests/vm/configs
apt_opts=(-qq -o APT::Sandbox::User=root)

# The configuration of a kernel of our own, in the order in which it is merged.
fragments() {
	local name list

	case $1 in
	uml)		list="uml common checks uml-checks" ;;
	uml-bench)	list="uml common" ;;
	arm64)		list="common arm64 checks" ;;
	arm64-64k)	list="common arm64 checks arm64-64k" ;;
	debug)		list="common debug checks" ;;
	*)		list="common debug checks $1" ;;
	esac
	for name in $list; do
		echo "$configs/$name.config"
	done
}

recipe_hash() {
	case $1 in
	6.*|7.3|7.3-rt|7.3-cloud|arm64-6.12) echo stock ;;
	uml*) { fragments "$1" | xargs cat; declare -f fix_uml; } | sha256sum | cut -c1-10 ;;
	*) fragments "$1" | xargs cat | sha256sum | cut -c1-10 ;;
	esac
}

# Package lists may be missing on a fresh machine.
need_lists() {
	apt-cache "${apt_conf[@]}" show "$1" >/dev/null 2>&1 ||
		apt-get "${apt_opts[@]}" "${apt_conf[@]}" update >&2
}

# 7.3 is in the backports of the next release.
apt_conf=()
use_next_release() {
	next_release "$CACHE/apt-$DEBIAN_NEXT" "$DEBIAN_NEXT-backports"
}

# Packages of another architecture, which need not be one of this machine.
use_architecture() {
	local suite

	suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
	next_release "$CACHE/apt-$1" "$suite" "$suite-security"
	apt_conf+=(-o "APT::Architecture=$1" -o "APT::Architectures=$1,amd64")
}

version_of() {
	apt-cache "${apt_conf[@]}" show --no-all-versions "$1" |
		sed -n 's/^Version: //p' | head -n 1
}

# Download packages (once) into the cache; print their file names. One that is named with its
# architecture ("make:amd64") is of that one.
fetch() {
	local package version file name

	mkdir -p "$CACHE/deb"
	for package; do
		version=$(version_of "$package")
		[ -n "$version" ] || die "package $package not found"
		name=${package%:*}_${version//:/%3a}_
		[[ $package == *:* ]] && name+=${package#*:} || name+='*'
		file=$(find "$CACHE/deb/" -name "$name.deb" | head -n 1)
		if [ -z "$file" ]; then
			(cd "$CACHE/deb" &&
			 { apt-get "${apt_opts[@]}" "${apt_conf[@]}" download "$package=$version" ||
			   { apt-get "${apt_opts[@]}" "${apt_conf[@]}" update &&
			     apt-get "${apt_opts[@]}" "${apt_conf[@]}" download "$package"; }; } >&2)
			file=$(find "$CACHE/deb/" -name "${package%:*}_*${name##*_}.deb" -printf '%T@ %p\n' |
			       sort -n | tail -n 1 | cut -d' ' -f2-)
		fi
		[ -n "$file" ] || die "cannot download $package"
		echo "$file"
	done
}

complete() {
	local dir=$1 name=$2

	touch "$dir/.complete"
	ln -sfn "${dir##*/}" "$CACHE/kernels/$name-$(recipe_hash "$name")"
	say "kernel $name is ready: $(cat "$dir/release")"
}

# ---- the distribution's kernels ------------------------------------------------

# The newest image package of a series ("6.12") or of a flavour of it ("7.3-rt").
find_image() {
	local series=${1%%-*}

	apt-cache "${apt_conf[@]}" pkgnames "linux-image-$series." |
		grep -E "^linux-image-[0-9.]+(-[0-9]+|\+deb[0-9]+)${1#"$series"}-$arch\$" |
		sort -V | tail -n 1 || true
}

# What an image package consists of: itself, or since 7.3 more packages of the same
# release.
image_packages() {
	local release=${1#linux-image-}

	echo "$1"
	apt-cache "${apt_conf[@]}" show --no-all-versions "$1" | sed -n 's/^Depends: //p' |
		tr -s ' ,|' '\n' | grep -xF -e "linux-base-$release" \
			-e "linux-binary-$release" -e "linux-modules-$release" || true
}

# Unpack the packages that follow into $dir/root, and link their parts to where
# kdir.sh looks for them.
unpack_stock() {
	local release=$1 headers=/usr/src/linux-headers-$1 modules deb
	shift

	rm -rf "$dir"
	mkdir -p "$dir/root"
	fetch "$@" | while read -r deb; do
		dpkg -x "$deb" "$dir/root"
	done
	# Debian 13 has /usr/lib only.
	modules=lib/modules/$release
	[ -d "$dir/root/$modules" ] || modules=usr/$modules
	# The headers find each other by absolute path: point them here.
	sed -i "s|/usr/src/linux-headers|$dir/root&|" "$dir/root$headers/Makefile"
	ln -s "root$headers" "$dir/kdir"
	ln -s "root/$modules" "$dir/modules"
	ln -s "$(cd "$dir" && ls -d root/boot/vmlinuz-* "root/$modules/vmlinuz" 2>/dev/null)" \
		"$dir/image"
	echo "$release" >"$dir/release"
	[ -s "$dir/kdir/Module.symvers" ] && [ -s "$dir/image" ] &&
		[ -s "$dir/modules/modules.order" ] || die "incomplete packages for $release"
}

# make_stock NAME: that of arm64 is named with its architecture before it.
make_stock() {
	local name=$1 arch=amd64 flavour image release version dir kbuild packages

	[[ $name != arm64-* ]] || arch=arm64
	flavour=${name#arm64-}
	image=$(find_image "$flavour")
	if [ -z "$image" ]; then
		apt-get "${apt_opts[@]}" "${apt_conf[@]}" update >&2
		image=$(find_image "$flavour")
	fi
	[ -n "$image" ] || die "no linux-image package for $name in this distribution"
	release=${image#linux-image-}
	version=$(version_of "$image")
	dir=$(readlink -f "$CACHE/kernels")/$name-$version-stock
	if [ ! -e "$dir/.complete" ]; then
		say "unpacking the distribution's kernel $release"
		local common=${release%-"$arch"}
		common=${common%"${flavour#"${flavour%%-*}"}"}
		# Programs that run here.
		kbuild=linux-kbuild-$common:amd64
		apt-cache "${apt_conf[@]}" show "$kbuild" >/dev/null 2>&1 || kbuild=linux-kbuild-$flavour:amd64
		mapfile -t packages < <(image_packages "$image")
		unpack_stock "$release" "${packages[@]}" "linux-headers-$release" \
			"linux-headers-$common-common" "$kbuild"
	fi
	complete "$dir" "$name"
}

# ---- our own kernels -------------------------------------------------------------

# Unpack linux-source-$1; the directory's name is left in $source.
unpack_source() {
	local package=linux-source-$1 deb

	need_lists "$package"
	deb=$(fetch "$package")
	source=$CACHE/src/$(basename "$deb" _all.deb)
	[ -e "$source/.unpacked" ] && return
	say "unpacking ${source##*/}"
	rm -rf "$source"
	mkdir -p "$source"
	dpkg-deb --fsys-tarfile "$deb" |
		tar -xO --wildcards './usr/src/linux-source-*.tar.xz' |
		xz -dc -T0 | tar -x --strip-components=1 -C "$source"
	touch "$source/.unpacked"
}

# Merge a fragment into $2/.config and insist on every line of it.
merge_config() {
	local fragment=$1 dir=$2 log=$2/build.log line bad=0
	shift 2

	grep -E '^(CONFIG_|# CONFIG_)' "$fragment" >>"$dir/.config"
	logged "$log" make -C "$source" O="$dir" "$@" olddefconfig
	while read -r line; do
		case $line in
		"# CONFIG_"*" is not set")
			line=${line#\# }
			if grep -q "^${line%% *}=" "$dir/.config"; then
				echo "not off in .config: ${line%% *}" >&2
				bad=1
			fi ;;
		# Gone or of another type after 6.12; the command line asks for
		# the panic, too.
		CONFIG_PROC_SYSCTL=y|CONFIG_BOOTPARAM_SOFTLOCKUP_PANIC=y)
			[ "$series" != 6.12 ] || grep -qxF "$line" "$dir/.config" || {
				echo "lost from .config: $line" >&2
				bad=1
			} ;;
		CONFIG_*)
			if ! grep -qxF "$line" "$dir/.config"; then
				echo "lost from .config: $line" >&2
				bad=1
			fi ;;
		esac
	done <"$fragment"
	[ $bad = 0 ] || die "the kernel did not take all of $fragment"
}

make_built() {
	local name=$1 series=$2 what=$3 source dir arch=x86_64
	local fragment log version start=$SECONDS

	local target=bzImage llvm=()

	[ "$name" != kmsan ] || llvm=(LLVM=1)
	case $what in
	uml)	arch=um ;;
	arm64)	arch=arm64 target=Image
		export CROSS_COMPILE=aarch64-linux-gnu- ;;
	esac
	with_lock "source-$series" unpack_source "$series"
	version=${source##*_}
	dir=$CACHE/kernels/$name-$version-$(recipe_hash "$name")
	if [ ! -e "$dir/.complete" ]; then
		log=$dir/build.log
		rm -rf "$dir"
		mkdir -p "$dir"
		logged "$log" make -C "$source" O="$dir" ARCH=$arch "${llvm[@]}" tinyconfig
		for fragment in $(fragments "$name"); do
			merge_config "$fragment" "$dir" ARCH=$arch "${llvm[@]}"
		done
		case $what in
		uml)
			fix_uml "$source"
			say "building User Mode Linux (three minutes on two cores)"
			logged "$log" make -C "$source" O="$dir" ARCH=um -j"$JOBS"
			ln -s linux "$dir/image" ;;
		full|arm64)
			say "building the $name kernel (five minutes on two cores; a quarter of an hour for kmsan)"
			logged "$log" make -C "$source" O="$dir" ARCH=$arch "${llvm[@]}" -j"$JOBS" \
				$target modules
			ln -s "arch/${arch%_64}/boot/$target" "$dir/image" ;;
		esac
		[ -e "$dir/image" ] || die "no kernel image in $dir"
		ln -s . "$dir/kdir"
		cp "$dir/include/config/kernel.release" "$dir/release"
		# Let "make -C kdir M=..." work without further arguments.
		{
			echo "ARCH := $arch"
			echo "export ARCH"
			[ "$arch" != arm64 ] || echo "export CROSS_COMPILE := $CROSS_COMPILE"
			[ -z "${llvm[*]}" ] || echo "export LLVM := 1"
			cat "$dir/Makefile"
		} >"$dir/Makefile.new"
		mv "$dir/Makefile.new" "$dir/Makefile"
		say "took $((SECONDS - start)) s"
	fi
	complete "$dir" "$name"
}

# What UML's source needs; done again, it changes nothing.
#
# UML before 6.13 keeps a process's extended processor state in a buffer of fixed
# size, too small for processors with AMX (11,008 bytes): make it larger.
#
# The checks record a stack for each allocation. UML looks up every word that is on the stack,
# four fifths of its time, and then drops all that are not a frame's return address: follow
# the frames instead.
fix_uml() {
	sed -i 's/DEFINE_LONGS(HOST_FP_SIZE, 2696)/DEFINE_LONGS(HOST_FP_SIZE, 12288)/' \
		"$1/arch/x86/um/user-offsets.c"
	sed -i -e '/^static void save_addr(/,/^};/d' -e '/^static void __save_stack_trace(/,/^}/c\
static void __save_stack_trace(struct task_struct *tsk, struct stack_trace *trace)\
{\
	unsigned long sp = (unsigned long)get_stack_pointer(tsk, tsk->thread.segv_regs);\
	unsigned long bp = get_frame_pointer(tsk, tsk->thread.segv_regs);\
	unsigned long end = ALIGN(sp, THREAD_SIZE), *frame, addr;\
\
	while (bp >= sp \&\& bp < end - sizeof(long) \&\& IS_ALIGNED(bp, sizeof(long)) \&\&\
	       trace->nr_entries < trace->max_entries) {\
		frame = (unsigned long *)bp;\
		addr = READ_ONCE_NOCHECK(frame[1]);\
		if (!__kernel_text_address(addr))\
			break;\
		trace->entries[trace->nr_entries++] = addr;\
		sp = bp + 2 * sizeof(long);\
		bp = READ_ONCE_NOCHECK(frame[0]);\
	}\
}' "$1/arch/um/kernel/stacktrace.c"
}

prepare() {
	case $1 in
	6.1|6.12)	make_stock "$1" ;;
	kmsan)		"$ROOT/tests/deps.sh" clang
			make_built "$1" 6.12 full ;;
	debug|kcsan|fuzz) make_built "$1" 6.12 full ;;
	uml|uml-bench)	make_built "$1" 6.12 uml ;;
	arm64|arm64-64k) "$ROOT/tests/deps.sh" arm64
			make_built "$1" 6.12 arm64 ;;
	arm64-6.12)	"$ROOT/tests/deps.sh" arm64
			use_architecture arm64
			make_stock "$1" ;;
	7.3|7.3-rt|7.3-cloud) use_next_release; make_stock "$1" ;;
	7.3-debug)	use_next_release; make_built 7.3-debug 7.3 full ;;
	esac
}

# All of it read before it runs: a build takes minutes, and this file may change.
{
if [ "${1:-}" = --hash ]; then
	recipe_hash "$2"
	exit
fi
if [ "${1:-}" = --source ]; then
	# The unpacked source of a series, for its scripts.
	[ "$2" != 7.3 ] || use_next_release
	source=$(find "$CACHE/src" -maxdepth 1 -type d -name "linux-source-$2_*" 2>/dev/null | sort -V | tail -n 1)
	[ -n "$source" ] && [ -e "$source/.unpacked" ] ||
		with_lock "source-$2" unpack_source "$2"
	echo "$source"
	exit
fi
update=0
if [ "${1:-}" = --update ]; then
	update=1
	shift
	apt-get "${apt_opts[@]}" update >&2
fi
[ $# -gt 0 ] || die "usage: kernels.sh [--update] NAME...; see the head of this file"
mkdir -p "$CACHE/kernels"
for name; do
	case $name in
	6.1|6.12|7.3|7.3-rt|7.3-cloud|debug|kcsan|kmsan|fuzz|uml|uml-bench|arm64|arm64-64k|arm64-6.12|7.3-debug) ;;
	*) die "unknown kernel $name" ;;
	esac
	link=$CACHE/kernels/$name-$(recipe_hash "$name")
	if [ $update = 0 ] && [ -e "$link/.complete" ]; then
		continue
	fi
	# A subshell, so that one kernel's package sources stay its own.
	(
		check_again() {
			[ $update = 0 ] && [ -e "$link/.complete" ] || prepare "$name"
		}
		with_lock "$name" check_again
	)
done
exit
}
