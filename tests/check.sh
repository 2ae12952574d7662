#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# make check: static checks. Each is one point; the last line counts.
#
# usage: check.sh [CHECK...]

set -u -o pipefail
. "$(dirname "$0")/vm/lib.sh"
cd "$ROOT" || exit 1

checks=(warnings sparse checkpatch kernel-doc codespell shellcheck cppcheck
	licences versions rules config sysfs-docs man layers)
[ $# -gt 0 ] || set -- "${checks[@]}"

"$ROOT/tests/deps.sh" build vm check || exit 1
source=$("$ROOT/tests/vm/kernels.sh" --source 6.12) || exit 1
work=$(mktemp -d)
log=$work/log
trap 'rm -rf "$work"' EXIT

files() {
	git ls-files --cached --others --exclude-standard -- "$@" | while read -r f; do
		[ ! -e "$f" ] || echo "$f"
	done
}

# Nothing may be printed about our own files.
check_warnings() {
	! tests/vm/modules.sh 6.12 W=1 2>&1 | grep -E 'warning:|error:|do not build'
}

check_sparse() {
	! tests/vm/modules.sh 6.12 C=2 CHECK="sparse" 2>&1 |
		grep -E 'kmod/.*(warning|error):|do not build'
}

# Left out, and why: these are files, not patches (FILE_PATH_CHANGES); version
# tests stand in compat/ (LINUX_VERSION_CODE, CONSTANT_COMPARISON); headers for user
# space and files shared with the host have no BIT() (BIT_MACRO) nor
# __always_inline; names and types of the existing interface stay (NEW_TYPEDEFS,
# CAMELCASE, VOLATILE), as do its sysfs files without a newline (SYSFS_EMIT);
# trace headers and tables read better in their own form. The shims that stand in
# for the kernel on the host, and the module that is faulty on purpose, are no
# kernel code. Nor does it know the code for vector registers: numbers such as 0x1p-3f,
# vector literals, lists of registers.
check_checkpatch() {
	local bad=0 f ignore

	ignore=FILE_PATH_CHANGES,LINUX_VERSION_CODE,CONSTANT_COMPARISON,BIT_MACRO,NEW_TYPEDEFS
	ignore+=,CAMELCASE,LINE_SPACING,MACRO_ARG_REUSE,UNCOMMENTED_DEFINITION
	ignore+=,MULTISTATEMENT_MACRO_USE_DO_WHILE,TRAILING_SEMICOLON,OPEN_ENDED_LINE
	ignore+=,PARENTHESIS_ALIGNMENT,VOLATILE,SYSFS_EMIT
	while read -r f; do
		# In a directory of its own: it leaves a file where it runs.
		(cd "$work" &&
		 perl "$source/scripts/checkpatch.pl" --no-tree --strict --terse --no-summary \
			--max-line-length=100 --ignore "$ignore" -f "$ROOT/$f") || bad=1
	done < <(files 'kmod/*.[ch]' 'uapi/*.h' 'tests/kunit/*.[ch]' | grep -vE '(shim|simd_code)\.h$|simd_avx[0-9]+\.c$')
	return $bad
}

check_kernel-doc() {
	local out

	out=$(files 'kmod/*.[ch]' 'uapi/*.h' |
	      xargs perl "$source/scripts/kernel-doc" -none 2>&1 | grep -E 'warning|error' |
	      sort -u)
	[ -z "$out" ] || { echo "$out"; return 1; }
}

check_codespell() {
	files . | grep -vE '\.(npy|neff|png|bin|gz|json)$|^LICENSES/' |
		xargs codespell -q 35 -L inout,fo,ser,nd,ot,te,clen,hda,fpr,ue,iput,inflight,parm
}

check_shellcheck() {
	{ files '*.sh' '*.bash' 'debian/*.postinst' 'debian/*.prerm' tests/image/neuron-vm 'tests/image/guest/*' tests/image/files/usr/libexec; echo .ci/run; } | xargs shellcheck -S warning
}

# Loops over lists are macros of sys/queue.h, which cppcheck does not look for in the system's headers.
check_cppcheck() {
	local queue

	queue=$(echo | gcc -include sys/queue.h -M -x c - | grep -o '/[^ ]*/sys/queue\.h')
	cppcheck -q --std=c11 --error-exitcode=1 --inline-suppr --enable=warning,portability \
		--suppress=missingIncludeSystem --suppress=preprocessorErrorDirective \
		--include="$queue" -Ilibneuron/include -Iuapi -Iuapi/share libneuron
}

# Every text file of ours says what licence it has, in its first lines.
check_licences() {
	local f bad=0

	while read -r f; do
		if ! head -n 4 "$f" | grep -q 'SPDX-License-Identifier:'; then
			echo "no licence named: $f"
			bad=1
		fi
	done < <(files . | grep -vE '^(LICENSE|LICENSES/.*|VERSION|\.gitignore|README\.md)$' |
		 grep -E '\.(c|h|sh|py|mk|map|conf|config|lds)$|Makefile$|Kbuild$|^\.ci/run$')
	return $bad
}

# Every file of the tree is documented, and nothing else.
check_sysfs-docs() {
	make -s -C tests/abi sysfs-docs
}

# One file holds the version; what must name it, too, names the same.
check_versions() {
	local version
	version=$(cat VERSION)

	[ "$(sed -n '1s/.*(\(.*\)).*/\1/p' debian/changelog)" = "$version" ] ||
		{ echo "debian/changelog is not of $version"; return 1; }
	! files . | grep -vE '^VERSION$' | xargs grep -nF -e "\"$version\"" -e "version $version" -- 2>/dev/null
}

# What is installed for udev, systemd-sysusers and modprobe (the rules themselves run in
# the guest: 40-udev.sh). Every option of a module is described, and can be set.
check_config() {
	local bad=0 module param conf=$work/modprobe.conf

	systemd-sysusers --dry-run "$ROOT/kmod/conf/sysusers-neuron.conf" 2>&1 | tee "$work/sysusers"
	grep -q "group 'neuron'" "$work/sysusers" || bad=1
	! grep -nE 'MODE="0?[0-7][0-7][1-7]"' kmod/conf/60-neuron.rules || bad=1
	if udevadm verify --help >/dev/null 2>&1; then
		udevadm verify --resolve-names=never kmod/conf/60-neuron.rules || bad=1
	fi
	sed 's/^#options/options/' kmod/conf/modprobe-neuron.conf >"$conf"
	modprobe -C "$conf" -c | grep '^options neuron' | sort >"$work/options"
	while read -r module param; do
		echo "options $module $param"
	done < <(grep -roE 'module_param(_named|_array|_cb)?\((\w+)' kmod --include='*.c' |
		 sed -E 's/^kmod\/(emu|pci)[^(]*\(/neuron_\1 /; s/^kmod[^(]*\(/neuron /') |
		sort >"$work/params"
	diff "$work/params" <(sed 's/=.*//' "$work/options") || bad=1
	return $bad
}

# "structure field" for each public structure of the library.
public_fields() {
	perl -0777 -ne '
		s{/\*.*?\*/}{}gs;
		while (/^struct (\w+) \{\n(.*?)^\};/gms) {
			my ($name, $body) = ($1, $2);
			1 while $body =~ s/\{[^{}]*\}|\[[^]]*\]//g;
			for (split /[;,]/, $body) {
				print "$name $1\n" if /\(\*(\w+)\)/ || /(\w+)\s*$/;
			}
		}' libneuron/include/neuron/*.h
}

# The same as the tables of the pages have them.
described_fields() {
	awk -F'|' '/^\.S[HS]/ { split($0, w, " "); name = w[2] == "struct" ? w[3] : "" }
		name && /^[a-z_]+\|/ { print name, $1 }' libneuron/man/neuron_*.3
}

# The pages are well-formed, have an example, and there is one for each function and a row
# for each field of a structure.
check_man() {
	local bad=0 page symbol

	mandoc -T lint -W warning libneuron/man/*.[1378] || bad=1
	for page in libneuron/man/*.[138]; do
		grep -q '^\.SH EXAMPLES' "$page" || { echo "$page: no example"; bad=1; }
	done
	sed -n '/^\.SH NAME/{n;s/ .-.*//;s/,//g;p}' libneuron/man/*.3 | tr ' ' '\n' >"$work/pages"
	while read -r symbol; do
		grep -qx "$symbol" "$work/pages" || { echo "$symbol: no page"; bad=1; }
	done < <(sed 's/@@.*//' libneuron/*.symbols)
	public_fields | sort -u >"$work/fields"
	[ -s "$work/fields" ] || bad=1
	! described_fields | sort -u | comm -3 "$work/fields" - | grep . || bad=1
	return $bad
}

# No circle of files, no arrow against the order of the folders.
check_layers() {
	tests/layers.sh
}

# House rules that no tool knows.
check_rules() {
	local bad=0

	! files 'kmod/*.[ch]' | grep -v '^kmod/compat/' | xargs grep -n LINUX_VERSION_CODE || bad=1
	! files 'kmod/*.[ch]' | xargs grep -nE '\bBUG(_ON)?\(' || bad=1
	# A reader of a plain one spins for ever if it preempted the writer (PREEMPT_RT).
	! files 'kmod/*.[ch]' | xargs grep -nE '\bseqcount_(t|init)\b' || bad=1
	# What is for tests only does not ship.
	! files 'kmod/*.[ch]' | xargs grep -nE '\bfail_nth\b' || bad=1
	! files 'kmod/*' 'libneuron/*' 'uapi/*' | xargs grep -nE '\b(TODO|FIXME|XXX)\b' || bad=1
	# A function fits a screen.
	files 'kmod/*.[ch]' 'libneuron/*.[ch]' 'tests/*.[ch]' | xargs awk '
		FNR == 1 { start = 0 }
		/^[a-z_].*\(/ { name = $0 }
		/^\{$/ { start = FNR }
		/^\}$/ && start {
			if (FNR - start - 1 > 80) {
				print FILENAME ":" start ": " FNR - start - 1 " lines: " name
				long = 1
			}
			start = 0
		}
		END { exit long }' || bad=1
	return $bad
}

passed=0 failed=0
for name; do
	if "check_$name" >"$log" 2>&1; then
		passed=$((passed + 1))
		echo "ok - $name"
	else
		failed=$((failed + 1))
		echo "not ok - $name"
		head -n 100 "$log" | sed 's/^/# /'
	fi
done
echo "# static checks: $passed passed, $failed failed"
[ $failed = 0 ]
