#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The kernel part as a patch series against the newest packaged kernel source: what each
# patch has is in the file "patches", the files are made by tree.py.
#
# usage: make.sh [DIRECTORY]		(build/series; old patches in it are replaced)

set -eu -o pipefail
. "$(dirname "$0")/../vm/lib.sh"

out=${1:-$ROOT/build/series}
here=$ROOT/tests/series
driver=drivers/accel/neuron
"$ROOT/tests/deps.sh" vm series
source=$("$ROOT/tests/vm/kernels.sh" --source 7.3)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Only what is changed of the source is in the repository: patches are the same.
python3 "$here/tree.py" "$work/all" "$source"
mkdir "$work/git"
cd "$work/git"
git init -q
# Who posts it, or else who maintains it.
maintainer=$(sed -n 's/^M:\t//p' "$here/maintainers")
git config user.name "$(git -C "$ROOT" config user.name || echo "${maintainer% <*}")"
git config user.email "$(git -C "$ROOT" config user.email || echo "$maintainer" | sed 's/.*<\(.*\)>/\1/')"
(cd "$work/all" && find . -type f) | while read -r file; do
	[ ! -e "$source/$file" ] || install -D -m 644 "$source/$file" "$file"
done
git add -A
git commit -q -m "Linux ${source##*_}"
git tag base

# Of a folder, its own files only.
take() {
	local path=$1

	[ -e "$work/all/$path" ] || die "patches: there is no $path"
	if [ -d "$work/all/$path" ]; then
		mkdir -p "$path"
		find "$work/all/$path" -maxdepth 1 -type f -exec cp -t "$path" {} +
	else
		install -D -m 644 "$work/all/$path" "$path"
	fi
}

end_patch() {
	[ -n "$subject" ] || return 0
	python3 "$here/tree.py" "$work/all" "$source" .
	git add -A
	printf '%s\n\n%s\n' "$subject" "$text" | git commit -q -s -F -
}

subject='' text='' in_text=0
while IFS= read -r line; do
	case $line in
	"#"*)	;;
	"= "*)	end_patch
		subject=${line#= } text='' in_text=0 ;;
	-)	in_text=1 ;;
	*)	if [ $in_text = 1 ]; then
			text+=$line$'\n'
		else
			take "$line"
		fi ;;
	esac
done <"$here/patches"
end_patch
left=$(cd "$work/all" && find . -type f | while read -r f; do cmp -s "$f" "$work/git/$f" || echo "$f"; done)
[ -z "$left" ] || die "no patch has: $left"

lines() {
	find "$@" -name '*.[ch]' -exec cat {} + | wc -l
}
mkdir -p "$out"
rm -f "$out"/*.patch
git format-patch -q --cover-letter -o "$out" base >/dev/null
{
	sed 1,2d "$here/cover.txt" | sed -e "s/@LINES_CORE@/$(lines $driver/{base,core,dma,mem,sysfs})/" \
		-e "s/@LINES_EMU@/$(lines $driver/emu)/" -e "s/@LINES_PCI@/$(lines $driver/pci)/" \
		-e "s/@KUNIT@/$(cat $driver/tests/*.c | grep -c 'KUNIT_CASE')/" \
		-e "s/@SELFTESTS@/$(find tools -path '*accel/neuron/*.c' | wc -l)/"
	echo
	echo "Against Debian's linux-source ${source##*_}."
} >"$work/cover"
sed -i -e "s/\*\*\* SUBJECT HERE \*\*\*/$(sed -n 1s,/,\\\\/,gp "$here/cover.txt")/" \
	-e "/\*\*\* BLURB HERE \*\*\*/{r $work/cover
		d}" "$out"/0000-*.patch
say "$(find "$out" -name '*.patch' | wc -l) files in $out"
