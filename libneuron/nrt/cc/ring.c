// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A ring of hosts.  In the first round each share goes from host to host, is combined with
 * what each has, and ends at the host whose share it is; in the second round it goes on to
 * all others.  What a host sends is what has come in the step before; so all messages of
 * a host are one sequence, of which each place is known on both sides.
 *
 * Nobody waits in a circle: a host that waits for a message to leave has sent all of its
 * own pieces, and has as many more on their way; then the next one has taken fewer than it.
 */
#include "ring.h"

#define RING_TAG (1ull << 40)		/* these are no words */
#define WINDOW 64u			/* receives that wait */
#define SENDS (2 * RING_PIECES)		/* that are on their way */

struct cursor {
	uint32_t step;
	uint64_t at;
};

struct run {
	struct across *x;
	struct ring *r;
	uint32_t combining;		/* steps of the first round */
	uint32_t steps;
	size_t places[WORLD_MAX_RANKS];	/* of shares in memory */
	struct cursor posted, next;
	struct fabric_request *in[WINDOW], *out[SENDS];
	uint32_t in_head, in_nr, out_head, out_nr;
};

/* Whose share comes in a step. */
static uint32_t share_of(const struct run *n, uint32_t step)
{
	uint32_t hosts = n->x->nr_hosts;

	return step < n->combining ? (n->x->host + 2 * hosts - 2 - step) % hosts :
	       (n->x->host + 2 * hosts - 1 - (step - n->combining)) % hosts;
}

static bool piece_at(const struct run *n, struct cursor *c, struct ring_piece *p)
{
	while (c->step < n->steps) {
		uint32_t host = share_of(n, c->step);
		uint64_t left = n->r->shares[host] - c->at;

		*p = (struct ring_piece){
			.host = host, .at = c->at, .to = n->places[host] + c->at,
			.bytes = left < RING_PIECE ? left : RING_PIECE,
		};
		if (left)
			return true;
		c->step++;
		c->at = 0;
	}
	return false;
}

static NRT_STATUS post(struct run *n)
{
	uint32_t hosts = n->x->nr_hosts, left = n->x->leaders[(n->x->host + hosts - 1) % hosts];
	struct ring_piece p;
	NRT_STATUS status = NRT_SUCCESS;

	while (n->in_nr < WINDOW && piece_at(n, &n->posted, &p) && status == NRT_SUCCESS) {
		status = fabric_receive(n->x->links.fabric, n->x->links.peers[left],
					n->x->tag | RING_TAG, &n->x->links.pieces->fabric, p.to,
					p.bytes, &n->x->watch, &n->in[(n->in_head + n->in_nr) % WINDOW]);
		n->posted.at += p.bytes;
		n->in_nr += status == NRT_SUCCESS;
	}
	return status;
}

static NRT_STATUS wait_out(struct run *n)
{
	NRT_STATUS status = fabric_wait(n->x->links.fabric, n->out[n->out_head], &n->x->watch);

	n->out_head = (n->out_head + 1) % SENDS;
	n->out_nr--;
	return status;
}

static NRT_STATUS send_piece(struct run *n, const struct ring_piece *p)
{
	uint32_t right = n->x->leaders[(n->x->host + 1) % n->x->nr_hosts];
	NRT_STATUS status = n->out_nr == SENDS ? wait_out(n) : NRT_SUCCESS;

	if (status != NRT_SUCCESS)
		return status;
	status = fabric_send(n->x->links.fabric, n->x->links.peers[right], n->x->tag | RING_TAG,
			     &n->x->links.pieces->fabric, p->to, p->bytes, &n->x->watch,
			     &n->out[(n->out_head + n->out_nr) % SENDS]);
	n->out_nr += status == NRT_SUCCESS;
	return status;
}

/*
 * One that has failed goes on without doing anything: the others are told in the end.  What came
 * meanwhile must not stay with the provider, which has little room for it.
 */
static void work(struct run *n, NRT_STATUS (*fn)(void *arg, const struct ring_piece *p),
		 const struct ring_piece *p)
{
	if (n->r->own == NRT_SUCCESS)
		n->r->own = fn(n->r->arg, p);
	fabric_progress(n->x->links.fabric);
}

/* The share that we have, or have something of, that goes first. */
static NRT_STATUS begin(struct run *n)
{
	uint32_t hosts = n->x->nr_hosts;
	uint32_t host = n->combining ? (n->x->host + hosts - 1) % hosts : n->x->host;
	struct ring_piece p = { .host = host };
	NRT_STATUS status = post(n);

	while (p.at < n->r->shares[host] && status == NRT_SUCCESS) {
		uint64_t left = n->r->shares[host] - p.at;

		p.bytes = left < RING_PIECE ? left : RING_PIECE;
		p.to = n->places[host] + p.at;
		work(n, n->r->load, &p);
		status = send_piece(n, &p);
		if (!n->combining)
			work(n, n->r->store, &p);
		p.at += p.bytes;
	}
	return status;
}

/*
 * What a network card has written to the device may still be on its way: a read of it comes back
 * behind it, before DMA of the device reads.
 */
static void flush(const struct fabric_memory *m, const struct ring_piece *p)
{
	if (m->on_device)
		(void)*(volatile uint8_t *)(m->bytes + p->to + p->bytes - 1);
}

static NRT_STATUS take(struct run *n, const struct ring_piece *p)
{
	bool combines = n->next.step < n->combining;
	NRT_STATUS status = fabric_wait(n->x->links.fabric, n->in[n->in_head], &n->x->watch);

	if (status != NRT_SUCCESS)
		return status;
	n->in_head = (n->in_head + 1) % WINDOW;
	n->in_nr--;
	flush(&n->x->links.pieces->fabric, p);
	if (combines)
		work(n, n->r->combine, p);
	/* In the last step of all it is where it has to be. */
	if (n->next.step + 1 < n->steps)
		status = send_piece(n, p);
	if (!combines || n->next.step + 1 == n->combining)
		work(n, n->r->store, p);
	return status ?: post(n);
}

NRT_STATUS ring_run(struct across *x, struct ring *r)
{
	uint32_t around = x->nr_hosts - 1;
	struct run n = { .x = x, .r = r, .combining = r->combine ? around : 0 };
	NRT_STATUS status;
	struct ring_piece p;
	size_t at = 0;

	n.steps = n.combining + (r->spread ? around : 0);
	for (uint32_t i = 0; i < x->nr_hosts; i++) {
		n.places[i] = at;
		at += r->shares[i];
	}
	status = begin(&n);
	while (status == NRT_SUCCESS && piece_at(&n, &n.next, &p)) {
		status = take(&n, &p);
		n.next.at += p.bytes;
	}
	while (status == NRT_SUCCESS && n.out_nr)
		status = wait_out(&n);
	return status != NRT_SUCCESS && nrt_comm_closing() ? NRT_CLOSED : status;
}
