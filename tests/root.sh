#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# A Debian in a directory, as on a fresh machine, from the archive that this machine
# uses: for what must be tried on another release, or where nothing is installed.
#
# usage: root.sh make RELEASE [PACKAGE...]	(debian-12 or debian-13)
#	print the directory of a root with these packages; kept in the cache, shared,
#	not to be changed. Made again after 30 days.
#        root.sh unpack ARCHITECTURE PACKAGE...
#	print the directory of these packages, and of what they need, of this machine's release for
#	another architecture: unpacked, nothing in it has run
#        root.sh run DIR [--bind PATH[:PATH]]... [--env NAME=VALUE]... COMMAND...
#	run a command in a root, as root, with /proc, /dev and these paths (of
#	outside, and inside if it is another). What is mounted goes with the command.

set -eu -o pipefail
. "$(dirname "$0")/vm/lib.sh"

sources() {
	local suite=$1 main security

	main=$(archive Debian)
	security=$(archive Debian-Security)
	[ -n "$main" ] || die "no Debian archive among this machine's package sources"
	echo "deb $main $suite main"
	echo "deb $main $suite-updates main"
	[ -z "$security" ] || echo "deb $security $suite-security main"
}

make_root() {
	local dir=$1 suite=$2 packages
	shift 2

	[ ! -e "$dir/.complete" ] || [ -n "$(find "$dir/.complete" -mtime +30)" ] || return 0
	"$ROOT/tests/deps.sh" root
	say "making a $suite root${*:+ with $*}"
	rm -rf "$dir" "$dir.new"
	mkdir -p "$dir" "$CACHE/archives/$suite"
	packages=$(IFS=, && echo "$*")
	# The archives are kept, so that the next root needs little of the network.
	logged "$dir.log" mmdebstrap --mode=root --variant=minbase \
		--include="ca-certificates${packages:+,$packages}" \
		--dpkgopt=force-unsafe-io --skip=cleanup/apt/lists --skip=download/empty --skip=cleanup/apt/cache \
		--setup-hook="mkdir -p \"\$1/var/cache/apt/archives\" && \
			cp -u '$CACHE/archives/$suite/'*.deb \"\$1/var/cache/apt/archives/\" || :" \
		--customize-hook="cp -u \"\$1/var/cache/apt/archives/\"*.deb '$CACHE/archives/$suite/' && \
			rm -f \"\$1/var/cache/apt/archives/\"*.deb" \
		"$suite" "$dir" < <(sources "$suite")
	touch "$dir/.complete"
}

unpack_root() {
	local dir=$1 architecture=$2 suite=$3 packages
	shift 3

	[ ! -e "$dir/.complete" ] || return 0
	"$ROOT/tests/deps.sh" root
	say "unpacking packages of $suite for $architecture"
	rm -rf "$dir"
	mkdir -p "$dir"
	packages=$(IFS=, && echo "$*")
	logged "$dir.log" mmdebstrap --mode=root --variant=extract --include="$packages" \
		--architectures="$architecture" "$suite" "$dir" < <(sources "$suite")
	touch "$dir/.complete"
}

case ${1:-} in
unpack)
	suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
	dir=$CACHE/roots/$2-$({ echo "$*"; sources "$suite"; } | sha256sum | cut -c1-10)
	mkdir -p "$CACHE/roots"
	with_lock "root-${dir##*/}" unpack_root "$dir" "$2" "$suite" "${@:3}"
	echo "$dir" ;;
make)
	suite=$(suite_of "$2")
	shift 2
	dir=$CACHE/roots/$suite-$({ echo "$*"; sources "$suite"; } | sha256sum | cut -c1-10)
	mkdir -p "$CACHE/roots"
	with_lock "root-${dir##*/}" make_root "$dir" "$suite" "$@"
	echo "$dir" ;;
run)
	dir=$2
	shift 2
	binds=() environment=()
	while :; do
		case $1 in
		--bind)	binds+=("$2"); shift 2 ;;
		--env)	environment+=("$2"); shift 2 ;;
		*)	break ;;
		esac
	done
	# shellcheck disable=SC2016
	exec unshare --mount --propagation private bash -eu -c '
		dir=$1 binds=$2
		shift 2
		mount --rbind /proc "$dir/proc"
		mount --rbind /dev "$dir/dev"
		while [ "$binds" -gt 0 ]; do
			mkdir -p "$dir/${1#*:}"
			mount --rbind "${1%%:*}" "$dir/${1#*:}"
			shift
			binds=$((binds - 1))
		done
		cp -L /etc/resolv.conf "$dir/etc/resolv.conf" 2>/dev/null || :
		exec chroot "$dir" env -i "$@"' root "$dir" ${#binds[@]} "${binds[@]}" \
		HOME=/root LANG=C.UTF-8 TERM=dumb DEBIAN_FRONTEND=noninteractive \
		PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		${http_proxy:+"http_proxy=$http_proxy"} "${environment[@]}" "$@" ;;
*)	die "usage: root.sh make|unpack|run ...; see the head of this file" ;;
esac
