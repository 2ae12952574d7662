# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash disable=SC2154	# test.sh has them
#
# Two machines on a network, and Slurm on them: part of test.sh. They have four devices each
# and one key of munge, that of the image.

cp -r tests/image/slurm "$files/config"
rm "$files/config/packages"
cp tests/image/guest/slurm-job tests/image/guest/slurm "$files/"
tests/deps.sh build
make -s -C libneuron B="$work/library" "$work/library/examples/nrt-job" >>"$log"
cp "$work/library/examples/nrt-job" "$files/"
lan=$((20000 + RANDOM % 10000))
vm+=(--cpus=1 --memory=1536 --timeout=1800)
four="arch=trn2 nr_devices=4 hbm_size=256"
"${vm[@]}" --log="$CACHE/logs/image-$release-2.console" --lan="$lan:2" --options="$four" \
	-- ./slurm >"$work/second" 2>&1 </dev/null &
second=$!
vm+=(--lan="$lan:1")
points slurm "$four"
touch "$files/end"
status=0
wait $second || status=$?
cp "$work/second" "$log"
result $status "the second machine comes to its end"
