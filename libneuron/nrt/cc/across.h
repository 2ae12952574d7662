/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What the hosts of a group do together.  In each host one rank, the leader, the first of
 * the group that is there, talks to the leaders of the others, of a memory of the host that
 * its device reaches, or of its device.
 */
#ifndef NRT_ACROSS_H
#define NRT_ACROSS_H

#include "comm.h"

/* What leaders tell each other before anything else. */
#define ACROSS_DATA 160u

struct across_word {
	uint32_t magic;
	uint32_t failed;
	uint8_t params[COMM_DATA];
	uint8_t data[ACROSS_DATA];
};

struct across {
	const char *func;
	uint32_t vnc, channel;
	struct nrt_links links;
	struct fabric_watch watch;
	const uint32_t *ranks;			/* the group, in order */
	uint32_t nr;
	uint32_t nr_hosts;
	uint32_t host;				/* ours */
	uint32_t leaders[WORLD_MAX_RANKS];	/* ranks, one of each host */
	uint32_t host_of[WORLD_MAX_RANKS];	/* of each of @ranks */
	uint32_t nr_here;
	uint32_t here[COMM_MAX_RANKS];		/* places in @ranks of those of this host */
	uint32_t locals[COMM_MAX_RANKS];	/* their ranks */
	uint32_t most;				/* ranks on one host */
	uint64_t tag;
	int64_t broken;				/* when one of them was seen to be gone, or 0 */
};

/* Does the group have ranks on several hosts? */
bool across_needed(uint32_t vnc, const uint32_t *ranks, uint32_t nr);
/* Until across_end() the channel is ours.  @ranks stays the caller's. */
NRT_STATUS across_begin(struct across *x, const char *func, uint32_t vnc, uint32_t channel,
			const uint32_t *ranks, uint32_t nr);
/* After NRT_TIMEOUT, NRT_FAILURE and the like the core has to join again. */
void across_end(struct across *x, NRT_STATUS status);

static inline bool across_leads(const struct across *x)
{
	return x->leaders[x->host] == x->links.rank;
}

/*
 * For leaders: so many bytes of memory for messages; what is there does not stay.  That for pieces
 * is memory of the device if the fabric takes it.  NRT_NETWORK_PROXY_FAILURE: there is none.
 */
NRT_STATUS across_words_memory(struct across *x, size_t size);
NRT_STATUS across_pieces_memory(struct across *x, size_t size);
/*
 * From @at on in memory is room for @size bytes of each host, ours first: everybody gets
 * those of all.  In as many steps as the number of hosts has binary digits.
 */
NRT_STATUS across_gather(struct across *x, size_t at, size_t size);
/* Where those of a host are then. */
size_t across_part(const struct across *x, size_t at, size_t size, uint32_t host);
/*
 * The same of @word, at the beginning of memory: NRT_INVALID if not all have the same
 * params, NRT_EXEC_COMPLETED_WITH_ERR if one has failed.
 */
NRT_STATUS across_agree(struct across *x, const struct across_word *word);
/* A word of a host, as it came; NRT_SUCCESS if it is one. */
NRT_STATUS across_check(const struct across_word *first, const struct across_word *word);

static inline size_t across_words(const struct across *x)
{
	return x->nr_hosts * sizeof(struct across_word);
}

#endif
