#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Print a command that runs CBMC 6. Debian 12 has none: it comes from the next
# release, with the libraries it needs, into the cache; nothing is installed.
# The archive is the one that this machine already uses.

set -eu
. "$(dirname "$0")/../vm/lib.sh"

dir=$CACHE/cbmc
next=trixie

if [ ! -e "$dir/.complete" ]; then
	# shellcheck disable=SC2016
	uri=$(apt-get indextargets --format '$(REPO_URI) $(ORIGIN) $(LABEL)' |
	      awk '$2 == "Debian" && $3 == "Debian" { print $1; exit }')
	[ -n "$uri" ] || die "no Debian archive among this machine's package sources"
	rm -rf "$dir"
	mkdir -p "$dir"/{parts,lists/partial,cache/archives/partial,deb,root}
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $uri $next main" \
		>"$dir/sources.list"
	: >"$dir/status"
	apt=(-q=2 -o "Dir::Etc::sourcelist=$dir/sources.list" -o "Dir::Etc::sourceparts=$dir/parts"
	     -o "Dir::Etc::preferencesparts=$dir/parts" -o "Dir::State::lists=$dir/lists"
	     -o "Dir::State::status=$dir/status" -o "Dir::Cache=$dir/cache"
	     -o "APT::Sandbox::User=root")
	say "fetching CBMC"
	apt-get "${apt[@]}" update >&2
	(cd "$dir/deb" && apt-get "${apt[@]}" download \
		cbmc libc6 libstdc++6 libgcc-s1 minisat zlib1g >&2)
	for deb in "$dir"/deb/*.deb; do
		dpkg -x "$deb" "$dir/root"
	done
	rm -rf "$dir/lists" "$dir/cache" "$dir/deb"
	touch "$dir/.complete"
fi
# The merged /usr of the next release: the loader may be in either place.
for loader in "$dir"/root/usr/lib64/ld-linux-x86-64.so.2 \
	      "$dir"/root/lib64/ld-linux-x86-64.so.2 \
	      "$dir"/root/usr/lib/*/ld-linux*.so.*; do
	[ -e "$loader" ] && break
done
libs=$(echo "$dir"/root/usr/lib/*-linux-gnu):$dir/root/usr/lib
echo "$loader --library-path $libs $dir/root/usr/bin/cbmc"
