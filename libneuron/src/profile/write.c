// SPDX-License-Identifier: LGPL-2.1-or-later
/* A profile as a file in the Trace Event format; man/neuron_profile.3 describes it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include <jansson.h>

#include "../device/slots.h"
#include "part.h"

/* Processes of the file: beyond all numbers that processes of the host can have. */
#define FIRST_PID 0x1000000
/* Threads of a process. */
#define TID_RUNS 1
#define TID_ENGINE 2
#define TID_QUEUE 100

struct writer {
	FILE *f;
	bool any;
	bool failed;			/* to make an event: no memory */
};

/* A line of the file: an item of a part, or one of its runs. */
struct line {
	const struct profile_part *part;
	const struct profile_item *item;	/* NULL: @run */
	const struct profile_run *run;
	uint64_t begin, end;
};

/* Takes the event; NULL is one that there was no memory for. */
static void put(struct writer *w, json_t *event)
{
	if (!event) {
		w->failed = true;
		return;
	}
	fputs(w->any ? ",\n" : "\n", w->f);
	w->any = true;
	if (json_dumpf(event, w->f, JSON_COMPACT | JSON_REAL_PRECISION(17)))
		w->failed = true;
	json_decref(event);
}

static int pid_of(const struct profile_part *p)
{
	return FIRST_PID + (int)(neuron_device_index(p->core->device) * NEURON_MAX_CORES +
				 p->core->nc);
}

static double us(uint64_t ns)
{
	return (double)ns / 1000;
}

/* ---- names --------------------------------------------------------------------------- */

static int by_instruction(const void *a, const void *b)
{
	const struct label_entry *x = a, *y = b;

	return x->engine != y->engine ? (x->engine < y->engine ? -1 : 1) :
	       x->inst < y->inst ? -1 : x->inst > y->inst;
}

/* The transfer that instruction @inst of an engine starts, or NULL. */
static const struct label_entry *find_trigger(const struct labels *l, uint32_t engine,
					      uint32_t inst)
{
	const struct label_entry key = { .engine = engine, .inst = inst };

	return bsearch(&key, l->entries, l->nr_entries, sizeof(key), by_instruction);
}

/* The transfer that descriptor @first of a ring belongs to, or NULL. */
static const struct label_entry *find_transfer(const struct labels *l, uint32_t ring,
					       uint32_t first)
{
	const struct label_entry *found = NULL;
	size_t low = 0, high = l->nr_entries;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct label_entry *e = &l->entries[l->by_ring[mid]];

		if (e->ring < ring || (e->ring == ring && e->first <= first)) {
			if (e->ring == ring)
				found = e;
			low = mid + 1;
		} else {
			high = mid;
		}
	}
	return found;
}

int find_ring(const struct labels *l, uint32_t slot)
{
	for (size_t i = 0; i < l->nr_rings; i++)
		if (l->rings[i].slot == slot)
			return (int)i;
	return -1;
}

/* ---- events -------------------------------------------------------------------------- */

static json_t *complete(const struct line *l, json_t *name, const char *cat, int tid, json_t *args)
{
	return json_pack("{s:o, s:s, s:s, s:f, s:f, s:i, s:i, s:o}", "name", name, "cat", cat,
			 "ph", "X", "ts", us(l->begin), "dur", us(l->end - l->begin), "pid",
			 pid_of(l->part), "tid", tid, "args", args);
}

/* What every event has, and then more. */
#define RUN_ARGS(r, format, ...) \
	json_pack("{s:s, s:I, " format "}", "model", (r)->labels->name, "run", \
		  (json_int_t)(r)->number, __VA_ARGS__)

static json_t *run_event(const struct line *l)
{
	json_t *args = RUN_ARGS(l->run, "s:i", "result", l->run->ret);

	return complete(l, json_string(l->run->labels->name), "model", TID_RUNS, args);
}

static json_t *instruction_event(const struct line *l)
{
	const struct profile_item *item = l->item;
	const struct labels *labels = l->run->labels;
	const char *opcode = isa_opcode_name(item->code);
	const struct label_entry *e = find_trigger(labels, item->where, item->id);
	json_int_t id = item->id;
	json_t *name, *args = item->unfinished ?
		RUN_ARGS(l->run, "s:I, s:b", "instruction", id, "unfinished", true) :
		RUN_ARGS(l->run, "s:I", "instruction", id);

	if (e && item->code == NEURON_ISA_OP_DMA_TRIGGER)
		name = json_sprintf("%s %s %u", opcode, labels->rings[e->ring].name, e->id);
	else
		name = json_string(opcode);
	return complete(l, name, "instruction", TID_ENGINE + (int)item->where, args);
}

static json_t *packet_event(const struct line *l)
{
	const struct profile_item *item = l->item;
	const struct labels *labels = l->run->labels;
	int ring = find_ring(labels, item->where);
	const struct label_entry *e = ring < 0 ? NULL :
				      find_transfer(labels, (uint32_t)ring, item->id);
	json_int_t id = item->id, bytes = item->bytes;
	json_t *name, *args = e ?
		RUN_ARGS(l->run, "s:I, s:I, s:s, s:I", "descriptor", id, "bytes", bytes, "queue",
			 labels->rings[ring].name, "transfer", (json_int_t)e->id) :
		RUN_ARGS(l->run, "s:I, s:I", "descriptor", id, "bytes", bytes);

	if (e)
		name = json_sprintf("%s %u", labels->rings[ring].name, e->id);
	else if (item->where < NR_ENGINES)
		name = json_sprintf("fetch %s", isa_engine_name(item->where));
	else
		name = json_string("DMA");
	return complete(l, name, "dma", TID_QUEUE + (int)item->where, args);
}

static json_t *semaphore_event(const struct line *l)
{
	return json_pack("{s:o, s:s, s:s, s:f, s:i, s:i, s:{s:I}}", "name",
			 json_sprintf("semaphore %u", l->item->where), "cat", "semaphore", "ph", "C",
			 "ts", us(l->begin), "pid", pid_of(l->part), "tid", 0, "args", "value",
			 (json_int_t)l->item->id);
}

static json_t *event(const struct line *l)
{
	if (!l->item)
		return run_event(l);
	switch ((enum profile_type)l->item->type) {
	case PROFILE_INSTRUCTION: return instruction_event(l);
	case PROFILE_PACKET: return packet_event(l);
	case PROFILE_SEMAPHORE: return semaphore_event(l);
	}
	return NULL;
}

/* ---- processes and threads ------------------------------------------------------------ */

static json_t *name_event(const struct profile_part *p, const char *what, int tid, json_t *name)
{
	return json_pack("{s:s, s:s, s:i, s:i, s:{s:o}}", "name", what, "ph", "M", "pid", pid_of(p),
			 "tid", tid, "args", "name", name);
}

static void put_names(struct writer *w, const struct profile_part *p)
{
	const struct neuron_geometry *g = &p->core->device->geometry;
	bool used[PROFILE_MAX_BUFFERS * 16] = { false };

	put(w, name_event(p, "process_name", 0,
			  json_sprintf("ND %u NC %u", neuron_device_index(p->core->device),
				       p->core->nc)));
	put(w, name_event(p, "thread_name", TID_RUNS, json_string("Models")));
	for (uint32_t e = 0; e < NR_ENGINES; e++)
		put(w, name_event(p, "thread_name", TID_ENGINE + (int)e, json_string(isa_engine_name(e))));
	for (size_t i = 0; i < p->nr_items; i++) {
		const struct profile_item *item = &p->items[i];

		if (item->type != PROFILE_PACKET || item->where >= sizeof(used) ||
		    used[item->where])
			continue;
		used[item->where] = true;
		put(w, name_event(p, "thread_name", TID_QUEUE + (int)item->where,
				  json_sprintf("DMA engine %u queue %u", slot_engine(g, item->where),
					       slot_queue(g, item->where))));
	}
}

/* ---- file ------------------------------------------------------------------------------ */

/* By time; what contains others comes before them. */
static int by_time(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	return x->end > y->end ? -1 : x->end < y->end;
}

/* Runs that are not wanted are left out; there are no items of them. */
static size_t list_lines(const struct neuron_profile *profile, struct line *lines)
{
	size_t nr = 0;

	for (size_t i = 0; i < profile->nr_parts; i++) {
		const struct profile_part *p = &profile->parts[i];

		for (size_t k = 0; k < p->nr_runs; k++)
			if (p->runs[k].labels && p->runs[k].end)
				lines[nr++] = (struct line){ p, NULL, &p->runs[k], p->runs[k].begin,
							     p->runs[k].end };
		for (size_t k = 0; k < p->nr_items; k++) {
			const struct profile_item *item = &p->items[k];

			lines[nr++] = (struct line){ p, item, &p->runs[item->run], item->begin,
						     item->end };
		}
	}
	qsort(lines, nr, sizeof(*lines), by_time);
	return nr;
}

static void write_all(struct writer *w, const struct neuron_profile *profile,
		      const struct line *lines, size_t nr)
{
	uint64_t lost = 0;

	for (size_t i = 0; i < profile->nr_parts; i++)
		lost += profile->parts[i].lost;
	fprintf(w->f, "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"lost\":%llu},\"traceEvents\":[",
		(unsigned long long)lost);
	for (size_t i = 0; i < profile->nr_parts && !w->failed; i++)
		put_names(w, &profile->parts[i]);
	for (size_t i = 0; i < nr && !w->failed; i++)
		put(w, event(&lines[i]));
	fputs("\n]}\n", w->f);
}

int profile_write(const struct neuron_profile *profile, int fd)
{
	struct writer w = { .f = NULL };
	struct line *lines;
	size_t nr = 1;
	int copy, ret;

	for (size_t i = 0; i < profile->nr_parts; i++)
		nr += profile->parts[i].nr_runs + profile->parts[i].nr_items;
	lines = calloc(nr, sizeof(*lines));
	if (!lines)
		return -ENOMEM;
	copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (copy >= 0)
		w.f = fdopen(copy, "w");
	if (!w.f) {
		ret = -errno;
		if (copy >= 0)
			close(copy);
		free(lines);
		return ret;
	}
	write_all(&w, profile, lines, list_lines(profile, lines));
	errno = 0;
	ret = ferror(w.f) ? -EIO : 0;
	if (fclose(w.f))
		ret = errno ? -errno : -EIO;
	if (!ret && w.failed)
		ret = -ENOMEM;
	free(lines);
	return ret;
}
