// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Keys and values of more sequences than there is device memory for: they share the tokens of a
 * prompt, and take turns on the device.
 *
 *	cc kv-pool.c $(pkg-config --cflags --libs neuron)
 */
#include <neuron/neuron.h>

#include "example.h"

#define TOKEN	4096u	/* bytes */
#define SEQS	6u

static void say(void *unused, const char *line)
{
	(void)unused;
	puts(line);
}

int main(void)
{
	const struct neuron_kv_opts opts = {
		.size = sizeof(opts), .token_bytes = TOKEN, .max_tokens = 1024,
		.host_bytes = 2048 * TOKEN, .log = say,
	};
	struct neuron_kv_stats stats = { .size = sizeof(stats) };
	struct neuron_kv_seq *prompt, *seq[SEQS];
	struct neuron_device *device;
	struct neuron_kv_pool *pool;
	const uint64_t *address;
	size_t n;

	check(neuron_device_open(0, &device), "device 0");
	check(neuron_kv_pool_open(device, &opts, &pool), "pool");
	/* A model would write 128 tokens here. */
	check(neuron_kv_seq_open(pool, 100, &prompt), "prompt");
	check(neuron_kv_seq_append(prompt, 128), "prompt");
	for (unsigned int i = 0; i < SEQS; i++) {
		check(neuron_kv_seq_fork(prompt, 128, 0, &seq[i]), "sequence");
		check(neuron_kv_seq_append(seq[i], 384), "sequence");
		check(neuron_kv_seq_unpin(seq[i]), "sequence");
	}
	/* What a run of one of them reads is at these addresses. */
	check(neuron_kv_seq_pin(seq[0]), "sequence 0");
	check(neuron_kv_seq_blocks(seq[0], &address, &n), "blocks");
	check(neuron_kv_pool_get_stats(pool, &stats), "statistics");
	printf("sequence 0: %zu blocks; %llu of all are shared, %llu were evicted, %llu came back\n", n,
	       (unsigned long long)stats.shared_blocks, (unsigned long long)stats.evictions,
	       (unsigned long long)stats.onboards);
	for (unsigned int i = 0; i < SEQS; i++)
		neuron_kv_seq_close(seq[i]);
	neuron_kv_seq_close(prompt);
	neuron_kv_pool_close(pool);
	neuron_device_close(device);
	return 0;
}
