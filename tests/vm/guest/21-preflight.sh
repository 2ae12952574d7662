#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# neuron-preflight: fits or not, by its exit status and in words; bad input. preflight_now.c
# has devices in other states.

models=${MODELS:-/usr/share/neuron/models}
bad=0
out=/tmp/preflight.$$
check() {
	if eval "$2"; then echo "ok - $1"; else echo "not ok - $1"; bad=1; fi
}

# status WANT ARGUMENT...: what it printed is in $out
status() {
	want=$1
	shift
	neuron-preflight "$@" >$out 2>&1
	[ $? = "$want" ]
}

# shellcheck disable=SC2034	# what check() evaluates
model=$models/mnist-bf16.neff
check "there is a model" '[ -e "$model" ]'
check "inputs and outputs at least once" 'status 2 -o x0 "$model" && status 0 -o x1 "$model"'
check "it fits" 'status 0 "$model"'
check "with two physical cores of microcode" 'grep -q "^._NC 0 .*|192\.[0-9]*MB" $out'
check "and a line that says so" 'grep -q "^HBM 0: fits, .* of 23.984GB stay free" $out'
check "on physical cores it is one" 'status 0 -l 1 "$model@1" && grep -q "^._NC 1 .*| 96\.[0-9]*MB" $out'
check "whose neighbour has its share of the same memory" 'grep -q "^._NC 0 .*| 96.000MB" $out'
check "without microcode little is left" 'status 0 -m 0 "$model" && ! grep -q "GB |\|MB |" $out'
check "a profile takes 1984 MB on each physical core that is used" 'status 0 -l 1 -r "$model@1" && grep -q "^._NC 1 .*| 1.938GB  |$" $out && grep -q "^._NC 0 .*|  0.000B  |$" $out'
check "or as much as one asks for" 'status 0 -l 1 -b dma=512 -b EVENT=1 "$model" && grep -q "^._NC 0 .*| 8.193GB  |$" $out'
check "in powers of two" 'status 2 -b DMA=3 "$model" && status 2 -b DMA=0 "$model" && status 2 -b SPARE=1 "$model"'
# The worked example of the device memory document: NEFF A.
dir=$out.d
mkdir -p $dir/sg00
echo '{"graphs": [{"definition": "sg00/def.json", "name": "sg00"}], "version": "0.5"}' >$dir/kelf-0.json
echo '{"dma": []}' >$dir/sg00/SP.json
echo '{"name": "definition", "sp": "SP.json", "dma_queue": {}, "var": {
 "a1": {"type": "virtual", "var_id": 1, "size": 536870912, "backing_variable_off": 0},
 "a2": {"type": "virtual", "var_id": 2, "size": 1073741824, "backing_variable_off": 536870912}}}' >$dir/sg00/def.json
check "NEFF A of the worked example" 'neuron-neff create -n a -o $out.a $dir'
sed -i 's/"size": 536870912/"size": 104857600/; s/"size": 1073741824/"size": 1610612736/; s/_off": 536870912/_off": 104857600/' $dir/sg00/def.json
check "NEFF B" 'neuron-neff create -n b -o $out.b $dir'
check "pages of 512 MB: 2 GB shared, 2.5 GB private" 'status 0 -l 1 -p 512 $out.a $out.b && grep -q "^._NC 0 .*| 2.000GB  | 2.500GB  |" $out'
check "of 2 GB: 2 GB shared, nothing private" 'status 0 -l 1 -p 2048 $out.a $out.b && grep -q "^._NC 0 .*| 2.000GB  |  0.000B  |" $out'
check "in one piece: what the larger one needs" 'status 0 -l 1 -c $out.a $out.b && grep -q "^._NC 0 .*| 1.625GB  |  0.000B  |" $out'
check "2048 is proposed" 'status 0 -l 1 --pages $out.a $out.b && grep -q "^NEURON_SCRATCHPAD_PAGE_SIZE=2048 takes the least" $out'
check "T3: which takes less than the best page" 'grep -q "; none, .* takes less$" $out'
check "T3: no page is proposed that takes more than the default" 'status 0 --pages $out.a && grep -q "^the default, none, takes the least$" $out'
check "pages that make no difference" 'status 0 -l 1 --pages "$model" && grep -q "^all of them take the same: the page size makes no difference$" $out'
check "T3: a page size is ignored, aloud, where the runtime ignores it" 'status 0 -p 2048 $out.a $out.b && grep -q "NEURON_SCRATCHPAD_PAGE_SIZE=2048 has no effect" $out && grep -q "^._NC 0 .*| 1.625GB  |  0.000B  |" $out'
check "T3: and takes effect where it does there" 'status 0 -c0 -p 2048 $out.a $out.b && ! grep -q "no effect" $out && grep -q "^._NC 0 .*| 2.000GB  |  0.000B  |" $out'
check "T3: the environment counts as for the runtime" '(export NEURON_RT_CONTIGUOUS_SCRATCHPAD=0 NEURON_SCRATCHPAD_PAGE_SIZE=2048; status 0 $out.a $out.b) && grep -q "^._NC 0 .*| 2.000GB  |  0.000B  |" $out'
sed -i 's/"size": 1610612736/"size": 26000000000/' $dir/sg00/def.json
check "24 GB are not enough for 26" 'neuron-neff create -n big -o $out.b $dir && status 1 $out.b && grep -q "^HBM 0: does not fit the device, .* too much for 23.984GB" $out'
# neff VARIABLES: a file with these
neff() {
	echo '{"name": "definition", "sp": "SP.json", "dma_queue": {}, "var": {'"$1"'}}' >$dir/sg00/def.json
	neuron-neff create -n io -o $out.b $dir
}
check "T2: inputs and outputs of 60 GB do not fit" 'neff "\"x\": {\"type\": \"input\", \"var_id\": 1, \"size\": 40000000000}, \"y\": {\"type\": \"output\", \"var_id\": 2, \"size\": 20000000000}" && status 1 $out.b'
check "T2: nor as one tensor; without them there is room" 'status 1 --io single $out.b && status 0 --io none $out.b'
neff '"x": {"type": "input", "var_id": 1, "size": 3221225472}, "y": {"type": "output", "var_id": 2, "size": 1073741824}'
check "T2: 4 GB of tensors" 'status 0 $out.b && grep -q "^._NC 0 .*| 4.000GB  |" $out && status 0 --io count $out.b && grep -q "^._NC 0 .*| 4.000GB  |" $out'
check "T2: 3 GB as one, 12 GB three times, 28 GB not" 'status 0 --io single $out.b && grep -q "^._NC 0 .*| 3.000GB  |" $out && status 0 --io x3 $out.b && grep -q "^._NC 0 .*| 12.000GB |" $out && status 1 --io x7 $out.b'
check "T2: a word that is none of these" 'status 2 --io twice $out.b && status 2 --io x $out.b'
check "T4: staging of collectives is in its column" 'status 0 --collectives 512 -l 1 $out.b && grep -q "^._NC 0 .*| 512.000MB |  0.000B  |  0.000B  |$" $out'
check "T4: once for a logical core, and the rings that reduce" 'status 0 --collectives 512 $out.b && grep -q "^._NC 0 .*| 64.000KB  | .*| 512.000MB |  0.000B  |  0.000B  |$" $out'
check "T4: of 16 ranks on several devices each has the inputs of 15" 'status 0 -C all-reduce:64M:16 $out.b && grep -q "^._NC 0 .*| 64.000KB  | .*| 960.000MB |  0.000B  |  0.000B  |$" $out'
check "T4: and in place its result" 'status 0 -C reduce-scatter:64M:16:in-place $out.b && grep -q "^._NC 0 .*| 964.000MB |  0.000B  |  0.000B  |$" $out'
check "T4: 20 ranks have sums of a part of them, of integers" 'status 0 -C all-reduce:64M:20:int8 $out.b && grep -q "^._NC 0 .*|  1.188GB  |  0.000B  |  0.000B  |$" $out && status 0 -C all-reduce:64K:20:in-place:int32 $out.b && grep -q "^._NC 0 .*|  1.312MB  |  0.000B  |  0.000B  |$" $out && status 0 -C all-reduce:64K:20:bfloat16 $out.b && grep -q "^._NC 0 .*|  1.188MB  |  0.000B  |  0.000B  |$" $out'
check "T4: on one device none; nor rings to gather" 'status 0 -C all-gather:64M:4 $out.b && grep -q "^._NC 0 .*|  0.000B   |  0.000B  |  0.000B  |$" $out && ! grep -q "64.000KB" $out'
check "T4: what is no operation" 'status 2 -C all-scatter:1M:4 $out.b && status 2 -C all-reduce:1M $out.b && status 2 -C all-reduce:1M:4:here $out.b && status 2 -C all-reduce:1M:0 $out.b && status 2 -C all-reduce:1M:4:int9 $out.b'
neff '"a": {"type": "tmp-buf", "var_id": 1, "size": 9223372036854775807}, "b": {"type": "tmp-buf", "var_id": 2, "size": 9223372036854775807}'
check "L15: two buffers of 2^63-1 bytes" 'status 2 $out.b && grep -q "more than 2^64 bytes" $out'
neff '"x": {"type": "input", "var_id": 1, "size": 9223372036854775807}'
check "L15: a tensor of 2^63-1 bytes does not fit, nor twice" 'status 1 $out.b && status 2 --io x2 $out.b'
neff '"a": {"type": "tmp-buf", "var_id": 1, "size": 4096, "alignment": 34359738368}'
check "C3: an alignment of 2^35" 'status 2 $out.b && grep -q "var.a: an alignment of 34359738368" $out'
# with VARIABLE STATUS: preflight of $out.b
with() {
	(export "${1?}"; status "$2" $out.b)
}
head -c 2000000 /dev/zero >$dir/sg00/k
neff '"k": {"type": "file", "var_id": 1, "size": 2000000, "file_name": "k"}'
check "an archive that unpacks to too much is refused, or not, as by the runtime" 'with NEURON_RT_NEFF_MAX_UNPACKED_MB=1 2 && grep -q "unpacks to more than the limit of 1048576 bytes" $out && with NEURON_RT_NEFF_MAX_UNPACKED_MB=2 0 && with NEURON_RT_NEFF_MAX_UNPACKED_MB=0 0 && with NEURON_RT_NEFF_MAX_UNPACKED_MB=x 2'
printf "\377\376\375" | dd of=$out.b bs=1 seek=172 conv=notrunc 2>/dev/null
check "so is a wrong hash" 'with NEURON_RT_VALIDATE_HASH=1 2 && grep -q "hash does not match" $out && with NEURON_RT_VALIDATE_HASH=0 0 && status 0 $out.b && with NEURON_RT_VALIDATE_HASH=2 2 && with NEURON_RT_NEFF_SHORT_CONSTANTS=x 2 && with NEURON_RT_NEFF_SHORT_CONSTANTS=yes 0'
check "host memory of a load: what the archive unpacks to" 'status 0 $out.b && grep -q "^$out.b: loading takes at least 1\.90[78]MB of host memory,  *0\.000B of it stay$" $out && status 0 --json $out.b && grep -q "\"peak\": 2000[0-9]*,$" $out'
rm $dir/sg00/k
check "on trn1 there is one memory for each core" 'status 0 -i trn1.32xlarge "$model@1" && grep -q "^ND 0 HBM 1" $out'
check "which has no pairs of cores" 'status 2 -i trn1 -l 2 "$model"'
check "page sizes are compared" 'status 0 --pages "$model" && [ $(grep -c "^ *\(none\|[0-9]*\) .*B$" $out) = 8 ]'
# of REGEX COUNT: as many lines
of() {
	[ "$(grep -c "$1" $out)" = "$2" ]
}
check "an instance: cores are counted on from device to device" 'status 0 -i trn1.32xlarge "$model@31" && grep -q "^neuron15:$" $out && of "^ND " 1 && grep -q "^ND 15 HBM 1" $out'
check "64 ranks take 64 times as much; devices alike share a table" 'status 0 -i trn2.48xlarge "$model@0-63" && of "^ND " 4 && grep -q "^neuron0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15, each:$" $out && grep -q "^16 devices, 64 files: 12\.0.*GB (code 12\.000GB, constants .*), which fit$" $out'
check "which are told apart" 'status 0 -i trn2.48xlarge "$model@2-9" && grep -q "^neuron0:$" $out && grep -q "^neuron1:$" $out && grep -q "^neuron2:$" $out && of "^ND " 8'
check "and a device that differs in one core" 'status 0 -i trn2.48xlarge "$model@0-7" "$model@7" && grep -q "^neuron0:$" $out && grep -q "^neuron1:$" $out'
neff '"x": {"type": "input", "var_id": 1, "size": 3221225472}, "y": {"type": "output", "var_id": 2, "size": 1073741824}'
check "a sum that does not fit names how many are too small" 'status 1 -i trn2.48xlarge $out.b@0-4 --io x7 && grep -q "^2 devices, 5 files: 140\..*GB (.*), which do not fit 2 of them: .* too much$" $out'
check "JSON of an instance" 'status 0 --json -i trn2.48xlarge "$model@0-63" && of "\"hbm\": " 64 && of "\"device\": 15," 4 && grep -q "^  \"devices\": 16,$" $out && of "^    \"code\": 12885164032,$" 1'
check "a core behind the last one, and numbers the wrong way round" 'status 2 -i trn2.48xlarge "$model@0-64" && grep -q "has no core 64$" $out && status 2 "$model@3-2" && status 2 "$model@3-" && status 2 "$model@-3"'
check "JSON" 'status 0 --json "$model" && grep -q "^  \"schema_version\": 1,$" $out && grep -q "^  \"fits\": true,$" $out && grep -q "\"code\": 4096," $out && grep -q "\"room\": 25753026560," $out'
check "JSON of what does not fit" 'status 1 --json --io x1000000 "$model" && grep -q "^  \"fits\": false,$" $out'
check "JSON of page sizes" 'status 0 --json --pages "$model" && [ $(grep -c page_mib $out) = 8 ] && grep -q "\"page_mib\": null," $out'
neff '"a": {"type": "tmp-buf", "var_id": 1, "size": 4096}'
cp $out.b $out.old
neff '"a": {"type": "tmp-buf", "var_id": 1, "size": 3221225472}'
check "diff: what the new one takes more" 'status 0 --diff $out.old $out.b && grep -q "^scratchpad  *4.000KB  *3.000GB  *+3.000GB$" $out && grep -q "^total " $out'
check "diff: and the other way round less" 'status 0 -d $out.b $out.old && grep -q "^scratchpad  *3.000GB  *4.000KB  *-3.000GB$" $out'
check "diff: over the budget" 'status 1 --diff --budget 3G $out.old $out.b && grep -q "over the budget of 3.000GB$" $out && status 0 --diff --budget 4G $out.old $out.b'
check "diff: JSON" 'status 1 --json --diff --budget 1G $out.old $out.b && grep -q "^  \"within_budget\": false$" $out && grep -q "\"scratchpad\": 3221221376" $out'
check "diff: of two files, with a size" 'status 2 --diff $out.b && status 2 --budget 1G $out.b && status 2 --diff --budget x $out.old $out.b && status 2 --diff --budget 0 $out.old $out.b'
rm -f $out.old
# shared BYTES: a file with a scratchpad and as much of its own
shared() {
	neff '"v": {"type": "virtual", "var_id": 1, "size": 4096, "backing_variable_off": 0}, "a": {"type": "tmp-buf", "var_id": 2, "size": '"$1}"
}
shared 4096
cp $out.b $out.tiny
shared 9663676416
cp $out.b $out.nine
shared 7516192768
# shellcheck disable=SC2034	# what check() evaluates
three="$out.tiny@1 $out.b@0 $out.nine@0"
check "a sum that fits, but some of it finds no place" 'status 1 -l 1 -c $three && grep -q "^HBM 0: does not fit the device, some of it finds no place with 7\..*GB of 23.984GB to spare; it would fit in another order$" $out && grep -q "^HBM 0: that order: " $out'
check "JSON of that" 'status 1 --json -l 1 -c $three && of "\"fits\": false" 2 && grep -q "\"order\": \[$" $out'
check "in another order it fits, or in pages" 'status 0 -l 1 -c $out.nine@0 $out.b@0 $out.tiny@1 && status 0 -l 1 $three'
check "with a process for each core, in the order of their first files" 'status 0 -l 1 -c -s $out.b@0 $out.tiny@1 $out.nine@0 && status 1 -l 1 -c -s $three && grep -q "^._NC 0 .*" $out'
rm -f $out.tiny $out.nine
check "now: it fits neuron0, too" 'status 0 --now "$model" && grep -q "^HBM 0: .* are free now, .* in one piece$" $out && grep -q "^neuron0: fits now$" $out'
check "now: JSON" 'status 0 --now --device 0 --json "$model" && grep -q "^  \"now\": {$" $out && grep -q "^    \"device\": 0,$" $out && grep -q "^    \"fits\": true,$" $out && grep -q "\"largest_free\": [1-9]" $out'
check "now: JSON of what does not fit the device" 'status 1 --now --json --io x1000000 "$model" && grep -q "^    \"text\": \"does not fit the device: HBM 0 has " $out'
check "now: with a profile" 'status 0 --now -r "$model" && grep -q "^neuron0: fits now$" $out && status 1 --now -b EVENT=1024 -b DMA=1024 "$model" && grep -q "^neuron0: does not fit the device: " $out'
check "now: a device that is not there" 'status 2 --now -D 63 "$model" && grep -q "/dev/neuron63: " $out'
check "now: not of a type, not with other questions" 'status 2 --now -i trn2 "$model" && status 2 --now --pages "$model" && status 2 -D 0 "$model"'
check "microcode has a line of its own" 'status 0 "$model" && grep -q "^192.000MB of the code are set aside for microcode (NEURON_RT_MICROCODE_MB)$" $out'
check "what is no number of a core" 'status 2 "$model@x" && grep -q "\"x\" is not the number of a core" $out && status 2 "$model@1x" && status 2 "$model@"'
check "a name with an @" 'cp "$model" $out.@x && status 0 $out.@x; rm -f $out.@x'
check "an unknown instance type" 'status 2 -i abacus "$model" && grep -q "no such instance type" $out'
check "a page that is no multiple of 512" 'status 2 -p 100 "$model"'
check "a core that is not there" 'status 2 "$model@4" && grep -q "has no core 4" $out'
check "no file" 'status 2 /no/such/file'
check "not a NEFF" 'status 2 /proc/self/exe'
check "nothing at all" 'status 2'
rm -rf $out $out.a $out.b $dir
exit $bad
