# SPDX-License-Identifier: GPL-2.0-only
#
# From the trace buffer of tracefs (neuron:neuron_alloc and neuron:neuron_free) to
# the trace format of the benchmark (traces/README.md): one device memory.
#
#   awk -v nd=0 -v hbm=0 -f trace.awk /sys/kernel/tracing/trace

# Frees of numbers that count down are one line.
function flush() {
	if (run)
		print "f", first (run > 1 ? " " last : "")
	run = 0
}

function gone(id) {
	if (run && id != last - 1)
		flush()
	if (!run++)
		first = id
	last = id
}

/neuron_(alloc|alloc_fail|free):/ {
	split("", v)
	for (i = 1; i <= NF; i++) {
		n = index($i, "=")
		if (n)
			v[substr($i, 1, n - 1)] = substr($i, n + 1)
	}
	if (v["host"] != 0 || v["nd"] != nd + 0 || v["hbm"] != hbm + 0)
		next
	if ($0 ~ /neuron_free:/) {
		if (v["addr"] in number) {
			gone(number[v["addr"]])
			unused[++nr_unused] = number[v["addr"]]
			delete number[v["addr"]]
		}
		next
	}
	flush()
	if ($0 ~ /neuron_alloc_fail:/) {
		print "r", v["size"] / 1024
	} else {
		id = nr_unused ? unused[nr_unused--] : next_id++
		number[v["addr"]] = id
		print "a", id, v["size"] / 1024 (v["align"] > 4096 ? " " v["align"] / 1024 : "")
	}
}

END { flush() }
