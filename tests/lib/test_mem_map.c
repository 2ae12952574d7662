// SPDX-License-Identifier: GPL-2.0-only
/* Maps of neuron-mem: what they say of ranges that are made up here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tools/map_svg.h"
#include "tools/timeline.h"

#define BASE	(1ull << 40)
#define TOTAL	(1ull << 30)

static struct neuron_range list[4096];
static struct map map;
static struct map_style style;
static struct process known[] = {
	{ .device = 1, .pid = 20, .name = "trainer", .command = "trainer <a> & \"b\"" },
	{ .device = 0, .pid = 30, .name = "elsewhere" },
};
static char *text;

static void add(enum neuron_range_state state, uint64_t bytes, int pid)
{
	uint64_t at = map.count ? list[map.count - 1].address + list[map.count - 1].bytes : BASE;

	list[map.count++] = (struct neuron_range){
		.address = at, .bytes = bytes, .state = state, .pid = pid, .nc = (uint32_t)pid % 8,
		.category = pid ? NEURON_MEM_TENSORS : 0,
	};
}

/* What is left is free, and the longest hole is the longest request. */
static void finish(void)
{
	const struct processes all = { known, ARRAY_SIZE(known) };
	uint64_t end = list[map.count - 1].address + list[map.count - 1].bytes;

	if (end < BASE + TOTAL)
		add(NEURON_RANGE_FREE, BASE + TOTAL - end, 0);
	map.count = map_join_holes(list, map.count);
	map.range = list;
	map.device = 1;
	map.stats.total = TOTAL;
	for (size_t i = 0; i < map.count; i++)
		if (list[i].state == NEURON_RANGE_FREE && list[i].bytes > map.stats.largest_free)
			map.stats.largest_free = list[i].bytes;
	map_add_up(&map, &all);
}

static void print(void)
{
	size_t size;
	FILE *f = open_memstream(&text, &size);

	map_text(&map, &style, f);
	fclose(f);
}

static bool says(const char *what)
{
	bool found = strstr(text, what);

	if (!found)
		fprintf(stderr, "# no \"%s\" in\n%s", what, text);
	return found;
}

static int setup(void **state)
{
	(void)state;
	memset(&map, 0, sizeof(map));
	style = (struct map_style){ .cols = 80, .rows = 8 };
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	free(text);
	text = NULL;
	return 0;
}

static void test_holders(void **state)
{
	(void)state;
	add(NEURON_RANGE_RESERVED, 16 << 20, 0);
	add(NEURON_RANGE_OWNED, 1 << 20, 30);
	add(NEURON_RANGE_OWNED, 64 << 20, 20);
	add(NEURON_RANGE_FREE, 1 << 20, 0);
	add(NEURON_RANGE_FREE, 1 << 20, 0);
	add(NEURON_RANGE_OWNED, 64 << 20, 20);
	add(NEURON_RANGE_USED, 4096, 0);
	finish();
	assert_int_equal(map.holes, 2);
	assert_true(map.used == (129ull << 20) + 4096);
	print();
	assert_true(says("neuron1 HBM 0: 1.000GB, used 129.004MB, free 878.996MB, largest hole 876.996MB\n"));
	assert_true(says("A  process 20 (trainer) 128.000MB in 2 allocations for core 4: tensors 128.000MB\n"));
	/* The one of this name has another device open. */
	assert_true(says("B  process 30 1.000MB in 1 allocation for core 6: tensors 1.000MB\n"));
	assert_true(says("#  reserved 16.000MB\n"));
	assert_null(strchr(text, '\033'));
}

/* Lines that are alike are one, so that the rest is shown in detail. */
static void test_lines(void **state)
{
	(void)state;
	add(NEURON_RANGE_OWNED, 512 << 20, 20);
	add(NEURON_RANGE_FREE, 4096, 0);
	add(NEURON_RANGE_OWNED, 4096, 30);
	finish();
	print();
	assert_true(says("a character is 4.000KB\n"));
	assert_true(says("          0B  A and so on, 512.000MB\n"));
	assert_true(says("   512.000MB  .B.............................................................."));
	assert_true(says("   512.250MB  . and so on, 511.750MB\n"));
}

static void test_line_of_cells(void **state)
{
	struct map_line line = { BASE, BASE + (8 << 20), 1, { 0 } };
	size_t size;
	FILE *f;

	(void)state;
	add(NEURON_RANGE_OWNED, 2 << 20, 20);
	add(NEURON_RANGE_FREE, 1 << 20, 0);
	add(NEURON_RANGE_OWNED, 256 << 10, 30);
	add(NEURON_RANGE_FREE, 768 << 10, 0);
	add(NEURON_RANGE_OWNED, 256 << 10, 30);
	add(NEURON_RANGE_OWNED, 768 << 10, 20);
	add(NEURON_RANGE_USED, 1 << 20, 0);
	finish();
	f = open_memstream(&text, &size);
	map_put_line(&map, &style, f, &line, 1 << 20);
	fclose(f);
	assert_string_equal(text, "          0B  AA.bAX..\n");
}

static void test_colours(void **state)
{
	(void)state;
	style.colour = true;
	add(NEURON_RANGE_OWNED, 2 << 20, 20);
	finish();
	print();
	assert_true(says("\033[30;48;5;33mA\033[0m  process 20"));
}

static void test_wrap(void **state)
{
	static const char colours[] = "  0B  \033[0m\033[30;48;5;33mAAAAA\033[0m\033[2m.....\033[0m";
	static const char words[] = "aaaaaaaaaa \033[2mbbbb\033[0m cccc dddd";
	size_t size;
	FILE *f = open_memstream(&text, &size);

	(void)state;
	assert_int_equal(map_wrap(f, colours, sizeof(colours) - 1, 16), 1);
	assert_int_equal(map_wrap(f, words, sizeof(words) - 1, 15), 2);
	assert_int_equal(map_wrap(f, words, sizeof(words) - 1, 14), 3);
	fclose(f);
	assert_true(says(colours));
	assert_true(says("aaaaaaaaaa \033[2mbbbb\033[0m\n    cccc dddd\n"));
	assert_true(says("aaaaaaaaaa\n    \033[2mbbbb\033[0m cccc\n    dddd\n"));
}

/* No line is longer than the window, and no map longer than it may be. */
static void test_room(void **state)
{
	(void)state;
	for (int i = 0; i < 1000; i++)
		add(i % 2 ? NEURON_RANGE_FREE : NEURON_RANGE_OWNED, (i % 7 + 1) << 16, i % 2 ? 0 : 20);
	finish();
	for (style.cols = 40; style.cols <= 200; style.cols += 8) {
		size_t lines = 0, longest = 0;

		print();
		for (char *line = strstr(text, "\n\n") + 2, *end; *line != '\n'; line = end + 1) {
			end = strchr(line, '\n');
			lines++;
			if ((size_t)(end - line) > longest)
				longest = (size_t)(end - line);
		}
		assert_in_range(lines, 2, style.rows + 1);
		assert_in_range(longest, style.cols / 2, style.cols);
		free(text);
		text = NULL;
	}
}

static void test_fragmentation(void **state)
{
	(void)state;
	add(NEURON_RANGE_FREE, 400 << 20, 0);
	add(NEURON_RANGE_OWNED, 4 << 20, 20);
	add(NEURON_RANGE_FREE, 300 << 20, 0);
	add(NEURON_RANGE_OWNED, 100 << 20, 30);
	add(NEURON_RANGE_OWNED, 220 << 20, 30);
	finish();
	assert_true(map_fragmentation(&map) > 42.8 && map_fragmentation(&map) < 42.9);
	print();
	assert_true(says("Clearly fragmented: 42.9%. One request can have up to 400.000MB of the 700.000MB that are free, which are in 2 holes.\n"));
	assert_true(says("Without the 4.000MB of process 20 (tensors) at 400.000MB the largest hole would have 704.000MB.\n"));
}

static void test_one_hole(void **state)
{
	(void)state;
	add(NEURON_RANGE_OWNED, 400 << 20, 20);
	finish();
	print();
	assert_true(says("Not fragmented: one request can have all of the 624.000MB that are free.\n"));
}

static void test_full(void **state)
{
	(void)state;
	add(NEURON_RANGE_OWNED, TOTAL, 20);
	finish();
	print();
	assert_true(says("\nFull.\n"));
}

static void test_json(void **state)
{
	json_t *ranges;
	const char *category = NULL;
	int pid = 0;

	(void)state;
	add(NEURON_RANGE_OWNED, 400 << 20, 20);
	finish();
	ranges = map_ranges_json(&map);
	assert_int_equal(json_array_size(ranges), 2);
	assert_int_equal(json_unpack(json_array_get(ranges, 0), "{s:i, s:s}", "pid", &pid, "category",
				     &category), 0);
	assert_int_equal(pid, 20);
	assert_string_equal(category, "tensors");
	assert_string_equal(json_string_value(json_object_get(json_array_get(ranges, 1), "state")),
			    "free");
	json_decref(ranges);
}

/* A picture is XML whatever a process calls itself, and what is there is within the strip. */
static void test_svg(void **state)
{
	double x, width, end = 0;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	(void)state;
	add(NEURON_RANGE_OWNED, 40 << 20, 20);
	add(NEURON_RANGE_FREE, 40 << 20, 0);
	add(NEURON_RANGE_OWNED, 4096, 30);
	finish();
	assert_int_equal(svg_write(f, &map, 1), 0);
	fclose(f);
	assert_true(says("trainer &lt;a&gt; &amp; &quot;b&quot;"));
	assert_true(says("one request can have 943.996MB"));
	for (const char *at = text; (at = strstr(at, "<rect x=")); at++) {
		assert_int_equal(sscanf(at, "<rect x=\"%lf\" y=\"%*f\" width=\"%lf\"", &x, &width), 2);
		assert_true(x >= SVG_LEFT - 0.01 && x + width <= SVG_LEFT + SVG_STRIP + 0.5);
		end = x + width > end ? x + width : end;
	}
	assert_true(end > SVG_LEFT + SVG_STRIP - 0.5);
}

/* What the legend of a picture has before a process. */
static void colour_of(int pid, char *colour)
{
	char who[32];
	const char *at;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_int_equal(svg_write(f, &map, 1), 0);
	fclose(f);
	snprintf(who, sizeof(who), ">process %d: ", pid);
	at = strstr(text, who);
	assert_non_null(at);
	while (strncmp(at, "fill=", 5))
		at--;
	memcpy(colour, at + 6, 7);
	free(text);
	text = NULL;
}

/* Whoever has more is the first in the legend, but is not drawn in another colour for it. */
static void test_colour_of_process(void **state)
{
	char one[2][8] = { "" }, other[2][8] = { "" };

	add(NEURON_RANGE_OWNED, 40 << 20, 20);
	add(NEURON_RANGE_OWNED, 4096, 30);
	finish();
	colour_of(20, one[0]);
	colour_of(30, one[1]);
	setup(state);
	add(NEURON_RANGE_OWNED, 4096, 20);
	add(NEURON_RANGE_OWNED, 40 << 20, 30);
	finish();
	colour_of(20, other[0]);
	colour_of(30, other[1]);
	assert_string_equal(one[0], other[0]);
	assert_string_equal(one[1], other[1]);
	assert_string_not_equal(one[0], one[1]);
}

/* Thousands of events make no long picture, and one that was short is not lost in it. */
static void test_timeline(void **state)
{
	static struct neuron_event event[4000];
	struct snapshot_hbm hbm = { .event = event, .nr_events = ARRAY_SIZE(event) };
	const struct snapshot s = { .list = &hbm, .count = 1 };
	size_t size;
	FILE *f = open_memstream(&text, &size);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(event); i++)
		event[i] = (struct neuron_event){
			.time = i * 10000000, .bytes = i / 2 == 777 ? 9ull << 30 : 64 << 20,
			.kind = i % 2 ? NEURON_EVENT_FREE : NEURON_EVENT_ALLOC,
			.category = NEURON_MEM_TENSORS,
		};
	event[100] = event[101] = (struct neuron_event){
		.time = event[100].time, .bytes = 1 << 30, .kind = NEURON_EVENT_REFUSE,
	};
	timeline_svg(&s, f);
	fclose(f);
	assert_true(says("4000 events in 39.990 seconds, at most 9.000GB in use"));
	assert_true(says(": 2 requests refused"));
	assert_true(says(">8.000GB<") && says(">0 s<") && says(">35 s<"));
	assert_true(says("<title>tensors</title>") && !strstr(text, "<title>model_code</title>"));
	assert_true(size < 40000);
}

#define HUGE "9223372036854775807"

/*
 * Sizes that no sum has room for, and times that go back: what is too much is the most, and
 * nothing is drawn beside the picture.
 */
static void test_timeline_hostile(void **state)
{
	static const char json[] =
		"{\"kind\": \"memory snapshot\", \"schema_version\": 1, \"hbms\": [{\"total\": 4096,"
		"\"ranges\": [{\"bytes\": 4096, \"state\": \"free\"}],"
		"\"categories\": {\"tensors\": " HUGE ", \"model_code\": " HUGE "},"
		"\"events\": ["
		"{\"kind\": \"free\", \"category\": \"tensors\", \"time_ns\": 5000, \"bytes\": " HUGE "},"
		"{\"kind\": \"free\", \"category\": \"tensors\", \"time_ns\": 1, \"bytes\": " HUGE "},"
		"{\"kind\": \"alloc\", \"category\": \"notifications\", \"time_ns\": 5001, \"bytes\": " HUGE "},"
		"{\"kind\": \"alloc\", \"category\": \"notifications\", \"time_ns\": " HUGE ", \"bytes\": " HUGE "},"
		"{\"kind\": \"grow\", \"category\": \"notifications\", \"time_ns\": 6000, \"bytes\": " HUGE "}]}]}";
	struct snapshot s;
	size_t size;
	FILE *f;

	(void)state;
	assert_int_equal(snapshot_parse(json, sizeof(json) - 1, &s), 0);
	f = open_memstream(&text, &size);
	timeline_svg(&s, f);
	fclose(f);
	assert_true(says("5 events in 0.000001 seconds, at most 8.000EB in use"));
	assert_null(strstr(text, "H-"));
	for (const char *at = text; (at = strstr(at, "H")); at++)
		assert_true(atoi(at + 1) <= SVG_LEFT + SVG_STRIP);
	free(text);
	f = open_memstream(&text, &size);
	assert_int_equal(timeline_trace(&s, f), 0);
	fclose(f);
	assert_true(says("\"tensors\":" HUGE));
	snapshot_free(&s);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_holders), TEST(test_lines), TEST(test_line_of_cells), TEST(test_colours),
		TEST(test_wrap), TEST(test_room), TEST(test_fragmentation), TEST(test_one_hole), TEST(test_full),
		TEST(test_json), TEST(test_svg),
		TEST(test_colour_of_process), TEST(test_timeline), TEST(test_timeline_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
