#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The Debian packages: built, examined by lintian, installed, used and purged in clean
# roots of a release, where DKMS builds the modules for that release's kernel.
#
# usage: deb.sh debian-12|debian-13 [all]
#
#   all	an upgrade from an earlier version, too; on Debian 12 the modules that
#	DKMS built for the stock kernels of the cache are loaded in virtual machines

set -eu -o pipefail
. "$(dirname "$0")/vm/lib.sh"
. "$ROOT/tests/points.sh"
cd "$ROOT"

release=${1:-debian-12}
all=${2:-}
label=$release
suite=$(suite_of "$release")
version=$(cat VERSION)
earlier=0.0.1
mkdir -p "$CACHE/tmp" "$CACHE/archives/$suite"
work=$(mktemp -d "$CACHE/tmp/deb.XXXXXX")
trap 'rm -rf "$work"' EXIT
log=$work/log

inside() {
	tests/root.sh run "$root" --bind "$CACHE/archives/$suite:/var/cache/apt/archives" \
		--bind "$work/debs:/debs" --bind "$work/sys:/sys" \
		bash -euo pipefail -c "$1" inside "${@:2}"
}

# ---- building ------------------------------------------------------------------------

part_build() {
	local builder suppress

	point "packages build" tests/debs.sh "$release" "$work/debs"
	builder=$(tail -n 1 "$log")
	# debian/control follows the policy of Debian 12, whose lintian knows no later one. It
	# wants a script of init for each service, which nobody does any more: the sandbox that
	# these need is that of systemd. Later lintians do not know that tag, and refuse it.
	suppress=out-of-date-standards-version
	[ "$release" != debian-12 ] ||
		suppress+=,package-supports-alternative-init-but-no-init.d-script
	point "lintian says nothing" tests/root.sh run "$builder" --bind "$work/debs:/build" \
		--env SUPPRESS="$suppress" \
		bash -c 'said=$(lintian --allow-root --info --display-info --pedantic --suppress-tags "$SUPPRESS" \
			--fail-on error /build/*.changes); status=$?; echo "$said"; [ "$status" = 0 ] && [ -z "$said" ]'
	point "seven packages" [ "$(cd "$work/debs" && echo ./*[a-z0-9]_*.deb | tr ' ' '\n' |
		grep -vc dbgsym)" = 7 ]
	rm -f "$work"/debs/*dbgsym*
	point "services are restarted by an upgrade, and stopped by a removal" services
}

# What is in the scripts: there is no systemd in a root.
services() {
	local package dir

	for package in rtd tools; do
		dir=$work/scripts-$package
		dpkg-deb -e "$work/debs/neuron-open-$package"_*.deb "$dir" &&
			[ ! -e "$dir/preinst" ] &&
			grep "try-restart" "$dir/postinst" &&
			grep "deb-systemd-invoke stop neuron-" "$dir/prerm" || return 1
	done
}

# ---- installing ----------------------------------------------------------------------

# All paths but those of logs, caches and data bases that packages share.
snapshot() {
	inside 'find / -xdev \( -path /proc -o -path /dev -o -path /sys -o -path /debs -o -path /run \
		-o -path /tmp -o -path /var/log -o -path /var/cache -o -path /var/lib/dpkg -o -path /var/lib/apt \
		-o -path "/etc/group*" -o -path "/etc/gshadow*" -o -path "/etc/ld.so.cache" -o -path "/etc/.pwd.lock" \
		-o -path "/var/lib/dkms/mok*" -o -path "/lib/modules/*/modules.*" -o -path "/usr/lib/modules/*/modules.*" \
		\) -prune -o -printf "%M %u %g %p\n" | sort -k 4'
}

# A clean root with what the packages need, a vendor's files, and a loaded module.
prepare() {
	local headers=(linux-headers-amd64)

	[ "$all" != all ] || [ "$release" != debian-12 ] ||
		headers=("linux-headers-$(tests/vm/kdir.sh 6.1 release)" "linux-headers-$(tests/vm/kdir.sh 6.12 release)")
	base=$(tests/root.sh make "$release" "${headers[@]}" bash-completion zsh pkg-config gcc libc6-dev)
	root=$work/root
	cp -a --reflink=auto "$base" "$root"
	mkdir -p "$root/usr/src/vendor-1" "$root/lib/modules/0/extra" "$root/opt/aws/neuron/lib" "$work/sys/module/neuron" \
		"$work/debs/aws/DEBIAN"
	echo 'BUILT_MODULE_NAME[0]="neuron"' >"$root/usr/src/vendor-1/dkms.conf"
	touch "$root/opt/aws/neuron/lib/libnrt.so.1" "$root/lib/modules/0/extra/neuron.ko"
	echo 2.19.0 >"$work/sys/module/neuron/version"
	printf '%s\n' 'Package: aws-neuronx-dkms' 'Version: 2' 'Architecture: all' \
		'Maintainer: nobody <nobody@localhost>' 'Description: stands for the vendor' \
		>"$work/debs/aws/DEBIAN/control"
	inside 'apt-get -q -y --no-install-recommends satisfy "$(for deb in /debs/*.deb; do
			dpkg-deb -f "$deb" Depends | tr , "\n"
		done | grep -vE "^ *((libneuron|libnrt).*)?$" | sort -u | paste -sd,)"
		dpkg-deb -b /debs/aws /tmp/aws.deb'
}

install_all() {
	inside 'apt-get -q -y --no-install-recommends install /debs/*.deb' | tee "$work/installed"
}

# For each kernel whose headers are there.
modules_built() {
	inside 'dkms status
		for kernel in /lib/modules/*/build; do
			kernel=$(basename "${kernel%/build}")
			dkms status -m neuron-open -v "$1" -k "$kernel" | grep -q ": installed"
			for module in neuron neuron_emu neuron_pci; do
				file=$(echo "/lib/modules/$kernel/updates/dkms/$module".ko*)
				[ "$(modinfo -F version "$file")" = "$1" ]
				modinfo -F vermagic "$file" | grep -q "^$kernel "
			done
		done
		! dkms status | grep neuron-open | grep -vF "/$1,"' "$1"
}

# Root's, for root alone to change; programs can be run, nothing else.
modes() {
	inside 'for package in $(dpkg-query -W -f "\${Package} \${db:Status-Status}\n" |
				sed -En "s/^((lib)?(neuron|nrt)[^ ]*) installed/\1/p"); do
			dpkg -L "$package"
		done | sort -u | while read -r path; do
			[ ! -L "$path" ] || continue
			want="root root 644"
			[ ! -d "$path" ] && [[ $path != /usr/bin/* ]] || want="root root 755"
			[ "$(stat -c "%U %G %a" "$path")" = "$want" ] || stat -c "%n: %U %G %a" "$path"
		done | tee /tmp/wrong
		[ ! -s /tmp/wrong ]'
}

compile() {
	inside 'cd "$(mktemp -d)"
		for example in /usr/share/doc/neuron-open-examples/examples/*.c; do
			gcc -Wall -Werror -o example "$example" $(pkg-config --cflags --libs nrt neuron)
		done
		for header in /usr/include/neuron/uapi/*.h; do
			echo "#include <neuron/uapi/${header##*/}>"
		done >uapi.c
		gcc -Wall -Werror -c uapi.c; rm -rf "$PWD"'
}

complete_bash() {
	inside 'set +eu; . /usr/share/bash-completion/bash_completion
		for tool in /usr/share/bash-completion/completions/neuron-*; do . "$tool"; done
		try() {
			local want=$1; shift
			COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
			COMPREPLY=()
			_neuron "$1" "${!#}" "${@: -2:1}" 2>/dev/null
			[[ " ${COMPREPLY[*]} " == *" $want "* ]] || { echo "$*: ${COMPREPLY[*]}"; exit 1; }
		}
		cd /usr/share/neuron/models
		try --topology neuron-ls --t
		try --iterations= neuron-top --it
		try --listen neuron-monitor --li
		try unpack neuron-neff ""
		try mnist-int8.neff neuron-neff info mn
		try --session-file= neuron-profile capture --s
		try mnist-bf16.neff neuron-profile capture -n mn
		try trn2 neuron-preflight -i t
		try mnist-int8 neuron-demo -m mnist-i'
}

# In a terminal of its own, where Tab is pressed.
complete_zsh() {
	inside 'zsh -fc "
		zmodload zsh/zpty
		zpty -b z TERM=dumb zsh -f -i
		zpty -w z \"autoload -Uz compinit; compinit -u -D; echo rea\"\"dy\"
		for i in {1..100}; do zpty -r z line; [[ \$line == *ready* ]] && break; done
		zpty -w -n z \$1
		sleep 3
		zpty -w -n z \$'"'\\\\n'"'
		for i in {1..200}; do
			sleep 0.05
			zpty -r -t z line && print -r -- \$line
		done
		:" zsh "neuron-neff --packa'$'\t''" | tee /tmp/zsh
		grep -q -- --package-version /tmp/zsh'
}

# ---- a guest -------------------------------------------------------------------------

# What DKMS built for this kernel, in a guest with it.
load() {
	local modules
	modules=$root/lib/modules/$(tests/vm/kdir.sh "$1" release)/updates/dkms

	tests/vm/run.sh "$1" --module "$modules/neuron.ko" --module "$modules/neuron_emu.ko" \
		--test "$work/load.sh" --log "deb-$1"
}

guests() {
	local kernel

	cat >"$work/load.sh" <<-END
	#!/bin/sh
	modprobe neuron_emu && [ -c /dev/neuron0 ] && [ "\$(cat /sys/module/neuron/version)" = $version ] &&
		[ "\$(cat /sys/class/neuron_device/neuron0/core_count)" -gt 0 ] && modprobe -r neuron_emu
	END
	for kernel in 6.1 6.12; do
		point "the modules for $kernel load" load $kernel
	done
}

# ---- all of it -----------------------------------------------------------------------

part_install() {
	point "what the packages depend on installs" prepare
	snapshot >"$work/before"
	if [ "$all" = all ]; then
		tests/debs.sh "$release" "$work/earlier" $earlier -A >"$log" 2>&1
		mv "$work"/earlier/neuron-open-*.deb "$work/debs/aws"
		point "an earlier version installs" inside "apt-get -q -y install /debs/aws/neuron-open-*.deb"
		point "its modules are there" modules_built $earlier
		rm "$work"/debs/aws/*.deb
	fi
	point "they install${all:+ over it}" install_all
	point "DKMS has built the modules" modules_built "$version"
	point "and signed them with its key" inside 'modinfo -F signer /lib/modules/*/updates/dkms/neuron*.ko* |
		tee /dev/stderr | grep -c "DKMS" | grep -qx "[2-9]"
		openssl x509 -inform der -in /var/lib/dkms/mok.pub -noout -subject'
	point "another module neuron in DKMS is named" grep 'another module named neuron, of /usr/src/vendor-1' "$work/installed"
	point "another module that is loaded is named" grep 'module neuron of version 2.19.0 is loaded' "$work/installed"
	point "and one that DKMS does not know" grep '/lib/modules/0/extra/neuron.ko is in the way' "$work/installed"
	point "another libnrt.so.1 is named" grep 'another libnrt.so.1, in /opt/aws' "$work/installed"
	point "the vendor's package and this one exclude each other" \
		inside 'apt-get -s install /tmp/aws.deb | grep "^Remv neuron-open-dkms"'
	point "owners and modes" modes
	point "all files are as packed" inside '[ -z "$(dpkg -V neuron-open-dkms libneuron0 libnrt1 libneuron-dev \
		neuron-open-tools neuron-open-examples | tee /dev/stderr)" ]'
	point "manual pages are compressed" inside '[ "$(dpkg -L libneuron-dev neuron-open-tools |
		grep -c "/man/man.*\.[137]\.gz$")" -gt 150 ]
		! dpkg -L libneuron-dev neuron-open-tools | grep "/man/man.*\.[137]$"'
	point "the group is there" inside 'getent group neuron'
	point "tools run" inside 'for tool in /usr/bin/neuron-*; do "$tool" --help >/dev/null; done
		neuron-neff info -V /usr/share/neuron/models/mnist-int8.neff'
	point "programs compile" compile
	point "neuron-monitor.service is there, and not enabled" inside \
		'dpkg -L neuron-open-tools | grep -qx ".*/lib/systemd/system/neuron-monitor.service"
		[ -z "$(find /etc/systemd -name "neuron-monitor*" | tee /dev/stderr)" ]'
	point "bash completes" complete_bash
	point "zsh completes" complete_zsh
	[ "$all" != all ] || [ "$release" != debian-12 ] || guests
	point "they are purged" inside 'apt-get -q -y purge "*neuron-open*" "libneuron*" libnrt1'
	snapshot >"$work/after"
	point "and leave nothing" diff "$work/before" "$work/after"
}

tests/deps.sh root vm
part_build
part_install
echo "# packages on $release: $passed passed, $failed failed"
[ $failed = 0 ]
