#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# make image, and neuron-vm with it, as its users use them.
#
# usage: test.sh RELEASE [all|slurm]	(debian-12 or debian-13)
#
#   slurm	a cluster of two machines, and nothing else
#   all	other people's programs, containers, Secure Boot, and the workflow that loads modules

set -eu -o pipefail
. "$(dirname "$0")/../vm/lib.sh"
. "$ROOT/tests/points.sh"
cd "$ROOT"

release=$1
all=${2:-}
mkdir -p "$CACHE/tmp" "$CACHE/logs"
work=$(mktemp -d "$CACHE/tmp/image-test.XXXXXX")
trap 'rm -rf "$work"' EXIT
image=$work/build/image
files=$work/files
log=$work/log
vm=("$image/neuron-vm" --timeout=900 --log="$CACHE/logs/image-$release.console" --files="$files")
two="arch=trn2 nr_devices=2 hbm_size=1024"
label="image, $release"
mkdir "$files"

# points NAME OPTIONS: the script NAME of tests/image/guest in one machine; its points count.
points() {
	local what=$1 options=$2

	cp "tests/image/guest/$what" "$files/"
	points_of "${vm[@]}" --options="$options" -- "./$what"
}

# points_of COMMAND...: the points of a program count, and that it comes to its end.
points_of() {
	local line status=0 output=$work/points

	"$@" >"$output" 2>&1 </dev/null || status=$?
	cp "$output" "$CACHE/logs/image-$release-$(basename "${*: -1}").log"
	cp "$output" "$log"
	while read -r line; do
		case $line in
		'ok - '*)	result 0 "${line#ok - }" ;;
		'not ok - '*)	result 1 "${line#not ok - }" ;;
		esac
	done < <(tr -d '\r' <"$output")
	result $status "$(basename "${*: -1}") comes to its end"
}

# ---- neuron-vm -------------------------------------------------------------------------

# The machine that a command runs in is one to look at, too: it starts once for both.
words() {
	local status=0

	cp tests/image/guest/devices "$files/"
	"${vm[@]}" --options="$two" -- bash -c './devices >points 2>&1; echo $? >ended
		printf "<%s>" "$@"; echo; cat in >out; echo wrong >&2; exit 7' \
		_ 'a b' "it's" '' '$HOME' >"$work/out" 2>"$work/err" </dev/null || status=$?
	cat "$work/out" "$work/err"
	[ "$status" = 7 ] && [ "$(cat "$work/out")" = "<a b><it's><><\$HOME>" ] &&
		[ "$(cat "$work/err")" = wrong ] && cmp "$files/in" "$files/out"
}

devices() {
	cat "$files/points" && return "$(cat "$files/ended")"
}

no_end() {
	local status=0

	"${vm[@]}" --timeout=5 -- true || status=$?
	[ $status = 124 ]
}

no_machine() {
	local status=0

	"${vm[@]}" --memory=5 -- true || status=$?
	[ $status = 125 ]
}

bad_usage() {
	local option status

	for option in --frob --accel=frob --port=1 --lan=1 --lan=20000:0 --files=/nowhere; do
		status=0
		"$image/neuron-vm" "$option" -- true || status=$?
		[ $status = 2 ] || return 1
	done
}

# QEMU itself says what machine it was told to make; it is not started. Arguments: options.
machine_of() {
	local status=0

	mkdir -p "$work/bin"
	printf '%s\n' '#!/bin/sh' 'printf "info cpus\ninfo usernet\nquit\n" |' \
		"$(command -v qemu-system-x86_64) \"\$@\" -S -monitor stdio" >"$work/bin/qemu-system-x86_64"
	chmod +x "$work/bin/qemu-system-x86_64"
	PATH="$work/bin:$PATH" "$image/neuron-vm" --accel=tcg --log="$work/console" "$@" -- true \
		2>"$work/machine" || status=$?
	cat "$work/machine"
	[ $status = 125 ]
}

has_cpus() {
	machine_of "$@" && [ "$(grep -c 'CPU #[0-9]*:' "$work/machine")" = "$cpus" ]
}

processors() {
	local cpus=3

	has_cpus --cpus=3 && has_cpus -c 3 || return
	cpus=$(nproc)
	[ "$cpus" -le 4 ] || cpus=4
	has_cpus
}

ports() {
	machine_of --port=23180:80 -p 23122:22 || return
	[ "$(awk '/HOST_FORWARD/ { print $3, $4, $6 }' "$work/machine" | sort)" = \
		"$(printf '127.0.0.1 %s\n' '23122 22' '23180 80')" ]
}

part_machine() {
	head -c 1000000 /dev/urandom >"$files/in"
	# As agents of clusters look at it.
	point "a test of the tree compiles for it" tests/root.sh run "$builder" --bind "$ROOT:/src" \
		--bind "$files:/files" \
		gcc -I/src/uapi -o /files/containers /src/tests/vm/guest/containers.c -ljansson
	point "a command: its words, output, status, files" words
	points_of devices
	point "one that does not end: 124" no_end
	point "a machine that cannot start: 125" no_machine
	point "wrong usage: 2" bad_usage
	point "as many processors as it is told" processors
	point "ports of this machine that are ports of that one" ports
	point "a prompt without a command" tests/image/prompt.py "$image/neuron-vm" --no-network
}

# ---- workflows -------------------------------------------------------------------------

step() {
	tests/image/step.py "tests/image/workflows/$1.yml" "$2"
}

# The job that runs the tests: a clean root, and a user who may nothing.
unprivileged() {
	local base root=$work/job

	base=$(tests/root.sh make "$release" git make)
	cp -a --reflink=auto "$base" "$root"
	tests/root.sh run "$root" bash -ec "$(step machine Machine)" || return
	printf '%s\n' '#!/bin/sh' 'id; neuron-ls -j >devices.json && neuron-demo -n 100' >"$files/run-tests"
	chmod +x "$files/run-tests"
	chmod 777 "$files"
	mkdir -p "$root/job"
	tests/root.sh run "$root" --bind "$files:/job" --bind "$image:/job/neuron-open/build/image" \
		setpriv --reuid=65534 --regid=65534 --clear-groups --no-new-privs \
		env HOME=/tmp bash -ec "cd /job; $(step machine Test)" || return
	[ "$(stat -c %u "$files/devices.json")" = 65534 ] &&
		python3 -c 'import json, sys; assert len(json.load(open(sys.argv[1]))) == 2' "$files/devices.json"
}

# ---- all of it -------------------------------------------------------------------------

tests/deps.sh root image imagetest
packages=()
case $all in
all)	mapfile -t packages < <(grep -v '^#' tests/image/packages) ;;
slurm)	mapfile -t packages < <(grep -v '^#' tests/image/slurm/packages) ;;
esac
rm -rf build/image
point "make image" make -s image RELEASE="$release" PACKAGES="${packages[*]}"
mkdir -p "$work/build"
mv build/image "$image"
if [ "$all" = slurm ]; then
	. tests/image/slurm.sh
else
	builder=$(tests/debs.sh "$release")
	part_machine
	point "the workflow with a virtual machine, without rights" unprivileged
	[ "$all" != all ] || . tests/image/all.sh
fi
echo "# image of $release: $passed passed, $failed failed"
[ $failed = 0 ]
