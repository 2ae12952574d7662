/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Is a text a trace in the Trace Event format that a viewer shows as it is meant?
 * For tests on the host and in the guest; needs jansson.
 */
#ifndef TRACE_CHECK_H
#define TRACE_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#define TRACE_THREADS	512
#define TRACE_RUNS	64
#define TRACE_INSTS	4096
#define TRACE_SLACK	0.0005	/* us: times are rounded to doubles */

struct trace_thread {
	json_int_t pid, tid;
	bool named;
	size_t events;
	double end[8];		/* of the events that are open, outermost first */
	size_t depth;
};

struct trace_sum {
	size_t runs;		/* category "model" */
	size_t instructions;	/* "instruction" */
	size_t packets;		/* "dma" */
	size_t semaphores;	/* "semaphore" */
	size_t calls;		/* "nrt" */
	uint64_t bytes;		/* of all packets */
	uint64_t fetched;	/* of packets that fetch instructions */
	uint64_t lost;
	size_t unfinished;
	double first, last;	/* us */
	/* how often each instruction of a thread was seen in a run */
	uint8_t seen[TRACE_RUNS][16][TRACE_INSTS];
	struct trace_thread threads[TRACE_THREADS];
	size_t nr_threads;
};

static inline bool trace_bad(const char *what, json_t *event)
{
	char *text = json_dumps(event, JSON_COMPACT | JSON_ENCODE_ANY);

	printf("# trace: %s: %s\n", what, text ? text : "");
	free(text);
	return false;
}

static inline struct trace_thread *trace_thread(struct trace_sum *s, json_t *event)
{
	json_int_t pid = json_integer_value(json_object_get(event, "pid"));
	json_int_t tid = json_integer_value(json_object_get(event, "tid"));

	for (size_t i = 0; i < s->nr_threads; i++)
		if (s->threads[i].pid == pid && s->threads[i].tid == tid)
			return &s->threads[i];
	if (s->nr_threads == TRACE_THREADS)
		return NULL;
	s->threads[s->nr_threads] = (struct trace_thread){ .pid = pid, .tid = tid };
	return &s->threads[s->nr_threads++];
}

/* Events of a thread lie one behind the other, or one within the other. */
static inline bool trace_nests(struct trace_thread *t, double ts, double end)
{
	while (t->depth && t->end[t->depth - 1] <= ts + TRACE_SLACK)
		t->depth--;
	if (t->depth == 8 || (t->depth && end > t->end[t->depth - 1] + TRACE_SLACK))
		return false;
	t->end[t->depth++] = end;
	t->events++;
	return true;
}

static inline bool trace_complete(struct trace_sum *s, json_t *event, struct trace_thread *t,
				  const char *name, const char *cat)
{
	json_t *args = json_object_get(event, "args");
	json_int_t run = json_integer_value(json_object_get(args, "run"));
	double ts = json_number_value(json_object_get(event, "ts"));
	json_t *dur = json_object_get(event, "dur");

	if (!json_is_number(dur) || json_number_value(dur) < 0)
		return trace_bad("no duration", event);
	if (!trace_nests(t, ts, ts + json_number_value(dur)))
		return trace_bad("overlaps another of its thread", event);
	s->unfinished += json_is_true(json_object_get(args, "unfinished"));
	if (!strcmp(cat, "model")) {
		s->runs++;
	} else if (!strcmp(cat, "instruction")) {
		json_int_t inst = json_integer_value(json_object_get(args, "instruction"));

		s->instructions++;
		if (run < 0 || run >= TRACE_RUNS || inst < 0 || inst >= TRACE_INSTS || t->tid > 15)
			return trace_bad("instruction or run", event);
		s->seen[run][t->tid][inst]++;
	} else if (!strcmp(cat, "dma")) {
		uint64_t bytes = (uint64_t)json_integer_value(json_object_get(args, "bytes"));

		s->packets++;
		s->bytes += bytes;
		if (!strncmp(name, "fetch ", 6))
			s->fetched += bytes;
	} else if (!strcmp(cat, "nrt")) {
		s->calls++;
	} else {
		return trace_bad("category", event);
	}
	return true;
}

static inline bool trace_event(struct trace_sum *s, json_t *event)
{
	const char *name = json_string_value(json_object_get(event, "name"));
	const char *ph = json_string_value(json_object_get(event, "ph"));
	const char *cat = json_string_value(json_object_get(event, "cat"));
	json_t *ts = json_object_get(event, "ts");
	struct trace_thread *t;

	if (!name || !*name || !ph || !json_is_integer(json_object_get(event, "pid")) ||
	    !json_is_integer(json_object_get(event, "tid")))
		return trace_bad("event", event);
	t = trace_thread(s, event);
	if (!t)
		return trace_bad("too many threads", event);
	if (!strcmp(ph, "M")) {
		json_t *value = json_object_get(json_object_get(event, "args"), "name");

		t->named |= !strcmp(name, "thread_name");
		return json_is_string(value) || trace_bad("name", event);
	}
	if (!json_is_number(ts) || json_number_value(ts) < s->last || !cat)
		return trace_bad("not in the order of time", event);
	s->last = json_number_value(ts);
	if (!s->first)
		s->first = s->last;
	if (!strcmp(ph, "X"))
		return trace_complete(s, event, t, name, cat);
	if (strcmp(ph, "C") || strcmp(cat, "semaphore") ||
	    !json_is_integer(json_object_get(json_object_get(event, "args"), "value")))
		return trace_bad("phase", event);
	s->semaphores++;
	return true;
}

/* False: it is not such a trace, and it was said why. To be freed in both cases. */
static inline bool trace_check(const char *text, struct trace_sum **sum)
{
	struct trace_sum *s = calloc(1, sizeof(*s));
	json_error_t error;
	json_t *root = json_loads(text, 0, &error), *list, *event;
	bool good = true;
	size_t i;

	*sum = s;
	if (!root) {
		printf("# trace: line %d: %s\n", error.line, error.text);
		return false;
	}
	list = json_object_get(root, "traceEvents");
	if (!json_is_array(list))
		good = trace_bad("no events", root);
	json_array_foreach(list, i, event)
		good = good && trace_event(s, event);
	for (i = 0; i < s->nr_threads && good; i++)
		if (s->threads[i].events && !s->threads[i].named &&
		    s->threads[i].pid >= 0x1000000) {
			printf("# trace: thread %lld has no name\n", (long long)s->threads[i].tid);
			good = false;
		}
	s->lost = (uint64_t)json_integer_value(json_object_get(json_object_get(root, "otherData"),
							       "lost"));
	json_decref(root);
	return good;
}

/* Each of @nr instructions of a thread once in each of @runs runs from @first. */
static inline bool trace_once(const struct trace_sum *s, unsigned int first, unsigned int runs,
			      unsigned int tid, unsigned int nr)
{
	for (unsigned int r = first; r < first + runs; r++)
		for (unsigned int i = 0; i < TRACE_INSTS; i++)
			if (s->seen[r][tid][i] != (i < nr)) {
				printf("# trace: run %u, thread %u: instruction %u %u times\n", r,
				       tid, i, s->seen[r][tid][i]);
				return false;
			}
	return true;
}

#endif
