// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * neuron-top: what Neuron devices do, again and again: memory, executions, errors, processes.
 *
 * It reads sysfs and /proc.  Only which core belongs to which process comes from an ioctl,
 * which needs no right to use the device; on a driver without it that stays unknown.
 */
#include <argp.h>
#include <errno.h>
#include <error.h>
#include <locale.h>

#include <curses.h>

#include <neuron/neuron.h>

#include "../common/access.h"
#include "options.h"
#include "page.h"
#include "watch.h"

#define BATCH_COLS 80
#define BATCH_ROWS 24

enum { PANE_DEVICES, PANE_PROCESSES, NR_PANES };
static const char *const sort_names[NR_PANES][4] = {
	{ "device", "memory", "inferences", "errors" },
	{ "memory", "host", "pid", "user" },
};

static struct {
	double delay;
	unsigned long count;		/* 0: for ever */
	bool batch, json, colour;
} options = { .delay = 1, .colour = true };

static struct {
	struct watch watch;
	struct device **order;		/* as shown */
	struct history history;
	unsigned int sort[NR_PANES];
	bool reverse[NR_PANES];
	char filter[40];
	bool typing, help;
	int pane;
	/* What the cursor is on: the device, and how many lines below its first. */
	unsigned int at_device;
	size_t at_line, first_line, first_process;
} top = { .watch.devices.wanted = READ_MEMORY | READ_USE | READ_ERRORS };

TOOL_VERSION("neuron-top");

static const struct argp_option argp_options[] = {
	{ "delay", 'd', "SECONDS", 0, "Between two refreshes, 0.1 to 3600; 1 by default", 0 },
	{ "iterations", 'n', "COUNT", 0, "End after so many refreshes", 0 },
	{ "batch", 'b', NULL, 0, "Print text, for logs; so it is if the output is no terminal", 0 },
	{ "json", 'j', NULL, 0, "Print JSON, one line for each refresh", 0 },
	{ "no-color", 'C', NULL, 0, "No colours", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	char *end;

	switch (key) {
	case 'd':
		options.delay = strtod(arg, &end);
		if (end == arg || *end || !(options.delay >= 0.1 && options.delay <= 3600))
			argp_error(state, "--delay is 0.1 to 3600, not \"%s\"", arg);
		return 0;
	case 'n': options.count = number(arg, 1, 1000000000, state); return 0;
	case 'b': options.batch = true; return 0;
	case 'j': options.json = true; return 0;
	case 'C': options.colour = false; return 0;
	default: return nothing_follows(key, arg, state);
	}
}

static const struct argp argp = {
	.options = argp_options,
	.parser = parse,
	.doc = "Watch Neuron devices: memory by HBM, core and category, executions, errors and "
	       "processes.",
};

/* ---- reading ------------------------------------------------------------------------- */

static void sum_up(double time)
{
	uint64_t used = UNKNOWN;

	for (size_t i = 0; i < top.watch.devices.count; i++) {
		struct device *d = top.watch.devices.list[i];

		d->nr_processes = 0;
		for (size_t k = 0; k < top.watch.processes.count; k++)
			d->nr_processes += top.watch.processes.list[k].device == d->index;
		add_known(&used, d->used);
	}
	history_add(&top.history, time, used);
}

static void refresh_all(void)
{
	double time = now();
	bool changed = watch_read(&top.watch, time);
	size_t n = top.watch.devices.count;

	if (changed || !top.order) {
		free(top.order);
		top.order = calloc(n + 1, sizeof(*top.order));
		if (!top.order)
			error(1, ENOMEM, "devices");
		for (size_t i = 0; i < n; i++)
			top.order[i] = top.watch.devices.list[i];
	}
	sum_up(time);
}

/* ---- order --------------------------------------------------------------------------- */

/* Unknown is less than anything. */
#define COMPARE(a, b) (((a) > (b)) - ((a) < (b)))
#define KNOWN(value) ((value) + 1)

static int compare_rates(double a, double b)
{
	return COMPARE(isnan(a) ? -1 : a, isnan(b) ? -1 : b);
}

static int compare_devices(const void *a, const void *b)
{
	const struct device *x = *(struct device *const *)a, *y = *(struct device *const *)b;
	int by = 0;

	switch (top.sort[PANE_DEVICES]) {
	case 1: by = COMPARE(KNOWN(y->used), KNOWN(x->used)); break;
	case 2: by = compare_rates(y->inferences_per_s, x->inferences_per_s); break;
	case 3: by = compare_rates(y->errors_per_s, x->errors_per_s); break;
	}
	by = by ?: COMPARE(x->index, y->index);
	return top.reverse[PANE_DEVICES] ? -by : by;
}

static int compare_processes(const void *a, const void *b)
{
	const struct process *x = *(struct process *const *)a, *y = *(struct process *const *)b;
	int by = 0;

	switch (top.sort[PANE_PROCESSES]) {
	case 0: by = COMPARE(y->device_bytes, x->device_bytes); break;
	case 1: by = COMPARE(y->host_bytes, x->host_bytes); break;
	case 3: by = strcmp(x->user, y->user); break;
	}
	by = by ?: COMPARE(x->pid, y->pid) ?: COMPARE(x->device, y->device);
	return top.reverse[PANE_PROCESSES] ? -by : by;
}

static bool matches(const struct process *p)
{
	char pid[16];

	snprintf(pid, sizeof(pid), "%d", p->pid);
	return !*top.filter || strcasestr(p->command, top.filter) || strstr(pid, top.filter) ||
	       strcasestr(p->name, top.filter) || strcasestr(p->user, top.filter);
}

/* Those that are to be shown, in order; ends with NULL, to be freed. */
static const struct process **shown_processes(size_t *count)
{
	const struct process **list = calloc(top.watch.processes.count + 1, sizeof(*list));

	if (!list)
		error(1, ENOMEM, "processes");
	*count = 0;
	for (size_t i = 0; i < top.watch.processes.count; i++)
		if (matches(&top.watch.processes.list[i]))
			list[(*count)++] = &top.watch.processes.list[i];
	qsort(list, *count, sizeof(*list), compare_processes);
	return list;
}

/* ---- the parts of a page ------------------------------------------------------------- */

static void draw_title(struct page *page)
{
	struct line *line = add_line(page, NULL);
	uint64_t used = UNKNOWN, total = 0;
	size_t n = top.watch.devices.count;
	bool emulated = false;
	time_t t = time(NULL);
	struct tm tm;
	char clock[16];
	int cols;

	for (size_t i = 0; i < n; i++) {
		emulated |= top.watch.devices.list[i]->emulated;
		add_known(&used, top.watch.devices.list[i]->used);
		total += top.watch.devices.list[i]->total;
	}
	put(page, line, HEAD, "neuron-top: %zu device%s%s%s%s%s%s", n, n == 1 ? "" : "s",
	    n ? ", " : "", n ? top.watch.devices.list[0]->instance : "",
	    emulated ? " (software)" : "", *top.watch.driver ? ", driver " : "", top.watch.driver);
	strftime(clock, sizeof(clock), "%T", localtime_r(&t, &tm));
	pad(page, line, HEAD, page->cols - 16);
	put(page, line, HEAD, " %8s (%ss)", clock, rate(options.delay));
	pad(page, line, HEAD, page->cols);
	line = add_line(page, NULL);
	put(page, line, PLAIN, "HBM %s of %s used, %s  ", size(used), size(total ?: UNKNOWN),
	    percent(used == UNKNOWN || !total ? NAN : (double)used / (double)total));
	cols = page->cols - line->len - 10;
	if (cols > HISTORY)
		cols = HISTORY;
	put(page, line, DIM, "%2.0f min ", cols * HISTORY_SECONDS / 60.0);
	put_cell(page, line, DIM, '|');
	put_history(page, line, &top.history, total, cols > 0 ? cols : 0);
	put_cell(page, line, DIM, '|');
}

static void draw_heads(struct page *page)
{
	struct line *line = add_line(page, NULL);

	put(page, line, HEAD, "  DEV KIND       CORES  %-*s", bar_cols(page) + 2, "HBM");
	put(page, line, HEAD, "  USED/TOTAL BUSY PROC   INF/S  ERR/S");
	if (has_history(page))
		put(page, line, HEAD, " %-*s", HISTORY_COLS, "HBM, LAST MINUTE");
	pad(page, line, HEAD, page->cols);
}

/* BUSY, INF/S and ERR/S; @middle stands below PROC. */
static void put_rates(const struct page *page, struct line *line, double busy, const char *middle,
		      double inferences, double errors_per_s)
{
	put(page, line, PLAIN, " %4s %4s %7s ", percent(busy), middle, rate(inferences));
	put(page, line, errors_per_s > 0 ? ALERT : PLAIN, "%6s", rate(errors_per_s));
}

static void draw_hbm(struct page *page, struct device *d, unsigned int number)
{
	const struct hbm *h = &d->hbm[number];
	struct line *line = add_line(page, d);
	uint64_t avail = h->file[HBM_FREE].now, largest = h->file[HBM_LARGEST_FREE].now;
	double fragmented = NAN;

	if (avail && avail != UNKNOWN && largest != UNKNOWN)
		fragmented = 1 - (double)largest / (double)avail;
	put(page, line, PLAIN, "      HBM %u", number);
	pad(page, line, PLAIN, NAME_COLS);
	put_bar(page, line, h->file[HBM_USED].now, h->file[HBM_TOTAL].now);
	put(page, line, PLAIN, " %5s/%-5s largest %5s frag %4s", size(h->file[HBM_USED].now),
	    size(h->file[HBM_TOTAL].now), size(largest), percent(fragmented));
	if (has_history(page))
		put(page, line, PLAIN, "  peak %s", size(h->file[HBM_HIGH_WATER].now));
}

/* A line of its own, if there were any. */
static void draw_errors(struct page *page, struct device *d, const struct core *c)
{
	struct line *line = NULL;

	for (size_t i = 0; i < NR_CLASSES; i++) {
		if (c->errors[i] == UNKNOWN || !c->errors[i])
			continue;
		if (!line) {
			line = add_line(page, d);
			put(page, line, PLAIN, "          errors: ");
		} else {
			put(page, line, PLAIN, ", ");
		}
		put(page, line, c->errors_per_s[i] > 0 ? ALERT : PLAIN, "%s %s", error_classes[i],
		    scaled((double)c->errors[i], 1000));
	}
}

static void draw_core(struct page *page, struct device *d, unsigned int number)
{
	const struct core *c = &d->core[number];
	struct line *line = add_line(page, d);
	uint64_t total = d->nr_hbms ? d->hbm[d->core_hbm[number]].file[HBM_TOTAL].now : d->total;

	if (!d->nr_hbms && d->nr_cores)
		total /= d->nr_cores;
	put(page, line, PLAIN, "      core %-2u", number);
	if (d->nr_hbms)
		put(page, line, DIM, " HBM %u", d->core_hbm[number]);
	pad(page, line, PLAIN, NAME_COLS);
	put_stack(page, line, c, total == UNKNOWN ? 0 : total);
	put(page, line, PLAIN, " %5s      ", size(c->file[CORE_MEMORY].now));
	put_rates(page, line, c->busy, "", c->inferences_per_s, c->all_errors_per_s);
	if (has_history(page) && c->owner > 0)
		put(page, line, PLAIN, "  pid %d", c->owner);
	else if (has_history(page) && c->owner == NEURON_OWNER_OUTSIDE)
		put(page, line, PLAIN, "  outside");
	else if (has_history(page) && c->file[CORE_HOST].now != UNKNOWN && c->file[CORE_HOST].now)
		put(page, line, PLAIN, "  host %s", size(c->file[CORE_HOST].now));
	draw_errors(page, d, c);
}

/* What the letters are, with the sums of the device; only those that there are. */
static void draw_legend(struct page *page, struct device *d)
{
	struct line *line = NULL;

	for (size_t i = 0; i <= NR_CATEGORIES; i++) {
		bool host = i == NR_CATEGORIES;
		uint64_t sum = host ? d->host.now : UNKNOWN;
		char text[64];

		for (unsigned int k = 0; k < d->nr_cores && !host; k++)
			add_known(&sum, d->core[k].category[i].now);
		if (!sum || sum == UNKNOWN)
			continue;
		snprintf(text, sizeof(text), " %s %s", host ? "host memory" : categories[i].word,
			 size(sum));
		if (!line || line->len + (int)strlen(text) + 3 > page->cols) {
			line = add_line(page, d);
			pad(page, line, PLAIN, 4);
		}
		put(page, line, PLAIN, "  ");
		if (!host)
			put_cell(page, line, (unsigned int)i + 1, categories[i].letter);
		put(page, line, PLAIN, "%s", text + host);
	}
}

static void draw_device(struct page *page, struct device *d)
{
	struct line *line = add_line(page, d);
	char cores[16], count[16];

	snprintf(cores, sizeof(cores), "%u/%u", d->cores_in_use, d->nr_cores);
	snprintf(count, sizeof(count), "%u", d->nr_processes);
	put(page, line, PLAIN, "%c %3u %-10.10s %5s ", d->opened ? '-' : '+', d->index,
	    *d->name ? d->name : "-", cores);
	put_bar(page, line, d->used, d->total);
	put(page, line, PLAIN, " %5s/%-5s", size(d->used), size(d->total ?: UNKNOWN));
	put_rates(page, line, d->busy, count, d->inferences_per_s, d->errors_per_s);
	if (has_history(page)) {
		put(page, line, PLAIN, " ");
		put_history(page, line, &d->history, d->total, HISTORY_COLS);
	}
	if (!d->opened)
		return;
	for (unsigned int i = 0; i < d->nr_hbms; i++)
		draw_hbm(page, d, i);
	for (unsigned int i = 0; i < d->nr_cores; i++)
		draw_core(page, d, i);
	draw_legend(page, d);
}

static void draw_devices(struct page *page)
{
	qsort(top.order, top.watch.devices.count, sizeof(*top.order), compare_devices);
	for (size_t i = 0; i < top.watch.devices.count; i++)
		draw_device(page, top.order[i]);
	if (!top.watch.devices.count)
		put(page, add_line(page, NULL), PLAIN, "No Neuron device. Is the module loaded "
		    "(modprobe neuron_emu)?");
}

static const struct device *device_of(const struct process *p)
{
	for (size_t i = 0; i < top.watch.devices.count; i++)
		if (top.watch.devices.list[i]->index == p->device)
			return top.watch.devices.list[i];
	return NULL;
}

static void draw_process(struct page *page, const struct process *p)
{
	struct line *line = add_line(page, NULL);
	const struct device *d = device_of(p);
	int32_t owner[NEURON_MAX_CORES] = { 0 };

	for (unsigned int i = 0; d && i < d->nr_cores; i++)
		owner[i] = d->core[i].owner;
	put(page, line, PLAIN, "%7d %-8.8s %4u %-7.7s %7s %7s %s", p->pid, p->user,
	    p->device, d ? owned_cores(owner, d->nr_cores, p->pid) : "-",
	    p->client ? size(p->device_bytes) : "-", p->client ? size(p->host_bytes) : "-",
	    *p->command ? p->command : p->name);
}

static void draw_processes(struct page *page)
{
	struct line *line = add_line(page, NULL);
	size_t n;
	const struct process **list = shown_processes(&n);

	put(page, line, HEAD, "    PID USER      DEV CORES       HBM    HOST COMMAND");
	pad(page, line, HEAD, page->cols);
	for (size_t i = 0; i < n; i++)
		draw_process(page, list[i]);
	if (!n)
		put(page, add_line(page, NULL), DIM, "No process %s%s.",
		    finds_all() ? "" : "that you may see ",
		    *top.filter ? "matches the filter" : "uses the devices");
	free(list);
}

static void open_or_close(bool open)
{
	for (size_t i = 0; i < top.watch.devices.count; i++)
		top.watch.devices.list[i]->opened = open;
	top.at_line = 0;
}

/* As many as there is room for beside title, heads, a few processes and keys; the first ones. */
static void open_where_room(int rows, int cols)
{
	struct page page = { .cols = page_cols(cols) };

	open_or_close(false);
	for (size_t i = 0; i < top.watch.devices.count; i++) {
		top.watch.devices.list[i]->opened = true;
		page.count = 0;
		draw_devices(&page);
		if ((int)page.count + 7 > rows) {
			top.watch.devices.list[i]->opened = false;
			break;
		}
	}
	free(page.line);
}

/* ---- text and JSON ------------------------------------------------------------------- */

static void print_text(void)
{
	struct page page = { .cols = BATCH_COLS };

	draw_title(&page);
	draw_heads(&page);
	draw_devices(&page);
	draw_processes(&page);
	for (size_t i = 0; i < page.count; i++)
		print_line(&page.line[i]);
	free(page.line);
}

static json_t *core_json(const struct device *d, unsigned int number)
{
	const struct core *c = &d->core[number];
	json_t *memory = json_object(), *failed = json_object();

	for (size_t i = 0; i < NR_CATEGORIES; i++)
		json_object_set_new(memory, categories[i].dir, json_value(c->category[i].now));
	for (size_t i = 0; i < NR_CLASSES; i++)
		json_object_set_new(failed, error_classes[i], json_pack(
			"{s:o, s:o}", "total", json_value(c->errors[i]),
			"per_second", json_rate(c->errors_per_s[i])));
	return json_pack("{s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
			 "core", (int)number, "hbm", (int)d->core_hbm[number],
			 "owner", d->owners_known ? json_integer(c->owner) : json_null(),
			 "used", json_value(c->file[CORE_MEMORY].now), "categories", memory,
			 "host", json_value(c->file[CORE_HOST].now), "busy", json_rate(c->busy),
			 "inferences", json_value(c->file[CORE_INFERENCES].now),
			 "inferences_per_second", json_rate(c->inferences_per_s),
			 "flops", json_value(c->file[CORE_FLOPS].now), "errors", failed);
}

static json_t *processes_json(const struct device *d)
{
	json_t *list = json_array();

	for (size_t i = 0; i < top.watch.processes.count; i++) {
		const struct process *p = &top.watch.processes.list[i];

		if (p->device == d->index)
			json_array_append_new(list, json_pack(
				"{s:i, s:s, s:s, s:o, s:o}", "pid", p->pid,
				"user", p->user, "command", p->command,
				"device_bytes", json_value(p->client ? p->device_bytes : UNKNOWN),
				"host_bytes", json_value(p->client ? p->host_bytes : UNKNOWN)));
	}
	return list;
}

static json_t *device_json(const struct device *d)
{
	json_t *hbms = json_array(), *cores = json_array();

	for (unsigned int i = 0; i < d->nr_hbms; i++) {
		json_t *hbm = json_pack("{s:i}", "hbm", (int)i);

		for (size_t k = 0; k < NR_HBM_FILES; k++)
			json_object_set_new(hbm, hbm_files[k], json_value(d->hbm[i].file[k].now));
		json_array_append_new(hbms, hbm);
	}
	for (unsigned int i = 0; i < d->nr_cores; i++)
		json_array_append_new(cores, core_json(d, i));
	return json_pack("{s:i, s:s, s:s, s:b, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o,"
			 " s:o}", "neuron_device", (int)d->index, "name", d->name,
			 "instance", d->instance,
			 "emulated", (int)d->emulated, "nc_count", (int)d->nr_cores,
			 "cores_in_use", (int)d->cores_in_use,
			 "total", json_value(d->total ?: UNKNOWN), "used", json_value(d->used),
			 "host", json_value(d->host.now), "busy", json_rate(d->busy),
			 "inferences_per_second", json_rate(d->inferences_per_s),
			 "errors_per_second", json_rate(d->errors_per_s),
			 "hbms", hbms, "cores", cores, "neuron_processes", processes_json(d));
}

static void print_object(void)
{
	json_t *list = json_array(), *o;

	for (size_t i = 0; i < top.watch.devices.count; i++)
		json_array_append_new(list, device_json(top.watch.devices.list[i]));
	o = json_pack("{s:i, s:I, s:f, s:s, s:o}", "schema_version", 1, "time", INT(time(NULL)),
		      "delay", options.delay, "driver", top.watch.driver, "neuron_devices", list);
	print_json_line(o);
}

static void run_batch(void)
{
	struct timespec t = timespec_of(options.delay);

	for (unsigned long i = 0; !options.count || i < options.count; i++) {
		if (i)
			nanosleep(&t, NULL);
		refresh_all();
		if (!i)
			open_where_room(BATCH_ROWS, BATCH_COLS);
		if (options.json) {
			print_object();
		} else {
			if (i)
				putchar('\n');
			print_text();
		}
		end_output(1);
	}
}

/* ---- the screen ---------------------------------------------------------------------- */

static void start_colours(void)
{
	static const short category[] = { COLOR_CYAN, COLOR_BLUE, COLOR_GREEN, COLOR_MAGENTA,
					  COLOR_YELLOW, COLOR_WHITE, COLOR_RED };
	const char *no = getenv("NO_COLOR");

	options.colour = options.colour && !(no && *no) && has_colors();
	if (!options.colour)
		return;
	start_color();
	use_default_colors();
	for (size_t i = 0; i < NR_CATEGORIES; i++)
		init_pair((short)(i + 1), COLOR_BLACK, category[i % ARRAY_SIZE(category)]);
	init_pair(USED, COLOR_GREEN, -1);
	init_pair(ALERT, COLOR_RED, -1);
}

static attr_t attributes(unsigned int style)
{
	switch (style) {
	case PLAIN: return A_NORMAL;
	case HEAD: return A_REVERSE;
	case DIM: return options.colour ? A_DIM : A_NORMAL;
	case CURSOR: return A_BOLD | A_REVERSE;
	case ALERT: return A_BOLD | (options.colour ? COLOR_PAIR(ALERT) : 0);
	default: return options.colour ? COLOR_PAIR(style) : A_NORMAL;
	}
}

static void show_line(const struct line *line, int row, bool cursor)
{
	move(row, 0);
	for (int i = 0; i < line->len && i < COLS; i++) {
		bool name = i < NAME_COLS;

		attrset(attributes(cursor && name ? CURSOR : line->style[i]));
		if (line->text[i] <= FULL)
			addstr(stroke(line->text[i]));
		else
			addch((unsigned char)line->text[i]);
	}
	attrset(A_NORMAL);
}

static void put_key(const struct page *page, struct line *line, const char *key, const char *what)
{
	put(page, line, CURSOR, " %s", key);
	put(page, line, HEAD, " %s", what);
}

static void show_footer(void)
{
	struct page page = { .cols = page_cols(COLS) };
	struct line *line = add_line(&page, NULL);

	if (top.typing) {
		put(&page, line, HEAD, " Filter: %s_   Enter: keep  Esc: no filter", top.filter);
	} else {
		put_key(&page, line, "q", "Quit");
		put_key(&page, line, "?", "Help");
		put_key(&page, line, "Enter", "Open");
		put_key(&page, line, "Tab", top.pane ? "Devices" : "Processes");
		put_key(&page, line, "s", "Sort:");
		put(&page, line, HEAD, "%s%s", sort_names[top.pane][top.sort[top.pane]],
		    top.reverse[top.pane] ? "(r)" : "");
		put_key(&page, line, "r", "Reverse");
		put_key(&page, line, "/", "Filter");
		put(&page, line, HEAD, "%s%s", *top.filter ? ":" : "", top.filter);
	}
	pad(&page, line, HEAD, page.cols);
	/* Some terminals scroll if the last cell is written. */
	line->len -= line->len == COLS;
	show_line(line, LINES - 1, false);
	free(page.line);
}

static void show_help(void)
{
	static const char *const text[] = {
		"q            quit",
		"Up, Down     to another line; Page Up, Page Down, Home, End",
		"Enter, Right open a device: its HBMs and cores; Enter, Left: close it",
		"a            open all, or close all",
		"Tab          between devices and processes",
		"s, r         sort by another column; the other way round",
		"/            only processes with these letters in command, user or number",
		"d            refresh twice as often, D: half as often",
		"",
		"CORES  in use / all            BUSY  share of the time that cores executed",
		"INF/S  executions in a second  ERR/S of them with an error, any class",
		"largest: longest free run of an HBM; frag: free memory that is not in it",
		"-      this driver does not tell, or not yet",
		"",
		"A bar is as long as the memory of the HBM. Letters in that of a core:",
	};
	char letters[32];
	int row = 1;

	erase();
	for (size_t i = 0; i < ARRAY_SIZE(text) && row < LINES - 1; i++)
		mvaddnstr(row++, 2, text[i], COLS - 2);
	for (size_t i = 0; i < NR_CATEGORIES && row < LINES - 1; i++) {
		snprintf(letters, sizeof(letters), "%c %-22s", categories[i].letter,
			 categories[i].word);
		mvaddnstr(row, 2 + (int)(i % 3) * 25, letters, COLS - 2);
		row += i % 3 == 2;
	}
	mvaddnstr(LINES - 1, 2, "Any key: back", COLS - 2);
}

/* The line of @page that the cursor is on; it stays with its device. */
static size_t find_cursor(const struct page *page)
{
	size_t at = 0, i;

	for (i = 0; i < page->count; i++)
		if (page->line[i].device && page->line[i].device->index == top.at_device)
			break;
	for (at = i == page->count ? 0 : i; i < page->count && at < i + top.at_line; at++)
		if (at + 1 == page->count || page->line[at + 1].device != page->line[i].device)
			break;
	return at;
}

static void set_cursor(const struct page *page, long at)
{
	const struct device *d;

	if (!page->count)
		return;
	at = at < 0 ? 0 : at >= (long)page->count ? (long)page->count - 1 : at;
	d = page->line[at].device;
	top.at_device = d ? d->index : 0;
	for (top.at_line = 0; at > 0 && page->line[at - 1].device == d; at--)
		top.at_line++;
}

/* Keeps @at within the @rows that begin at *@first, and these within @count. */
static void scroll_to(size_t *first, size_t at, size_t rows, size_t count)
{
	if (at < *first)
		*first = at;
	if (at >= *first + rows)
		*first = at - rows + 1;
	if (*first + rows > count)
		*first = count > rows ? count - rows : 0;
}

/* Heads, devices, processes, keys; @devices is kept for the keys that follow. */
static void show(struct page *devices)
{
	struct page heads = { .cols = devices->cols }, procs = { .cols = devices->cols };
	int room, rows, row = 0;
	size_t at;

	erase();
	devices->count = 0;
	draw_title(&heads);
	draw_heads(&heads);
	draw_devices(devices);
	draw_processes(&procs);
	room = LINES - (int)heads.count - 1;
	rows = room - (int)procs.count;
	if (rows < (int)devices->count) {
		int least = room / 5 < 2 ? 2 : room / 5;	/* of the processes */

		if (least > (int)procs.count)
			least = (int)procs.count;
		rows = room - least < (int)devices->count ? room - least : (int)devices->count;
	}
	at = find_cursor(devices);
	scroll_to(&top.first_line, at, rows > 0 ? (size_t)rows : 1, devices->count);
	for (size_t i = 0; i < heads.count && row < LINES; i++)
		show_line(&heads.line[i], row++, false);
	for (int i = 0; i < rows && top.first_line + (size_t)i < devices->count; i++)
		show_line(&devices->line[top.first_line + (size_t)i], row + i,
			  !top.pane && top.first_line + (size_t)i == at);
	row += rows < (int)devices->count ? rows : (int)devices->count;
	rows = LINES - 1 - row - 1;
	if (rows >= 0)
		show_line(&procs.line[0], row++, false);
	scroll_to(&top.first_process, top.first_process, rows > 0 ? (size_t)rows : 1,
		  procs.count - 1);
	for (int i = 0; i < rows && top.first_process + (size_t)i + 1 < procs.count; i++)
		show_line(&procs.line[top.first_process + (size_t)i + 1], row + i, false);
	show_footer();
	free(heads.line);
	free(procs.line);
}

static void open_device(const struct page *devices, int how)
{
	size_t at = find_cursor(devices);
	struct device *d = at < devices->count ? devices->line[at].device : NULL;

	if (!d)
		return;
	d->opened = how < 0 ? !d->opened : how;
	if (!d->opened)
		top.at_line = 0;
}

static bool any_opened(void)
{
	for (size_t i = 0; i < top.watch.devices.count; i++)
		if (top.watch.devices.list[i]->opened)
			return true;
	return false;
}

static void type_filter(int key)
{
	size_t len = strlen(top.filter);

	if (key == 27)
		top.filter[0] = 0;
	if (key == 27 || key == '\n' || key == '\r' || key == KEY_ENTER)
		top.typing = false;
	else if ((key == KEY_BACKSPACE || key == 127 || key == '\b') && len)
		top.filter[len - 1] = 0;
	else if (key >= ' ' && key <= '~' && len + 1 < sizeof(top.filter))
		strcat(top.filter, (char[]){ (char)key, 0 });
}

static void move_by(const struct page *devices, long lines)
{
	long first = (long)top.first_process + lines;

	if (top.pane == PANE_DEVICES)
		set_cursor(devices, (long)find_cursor(devices) + lines);
	else
		top.first_process = first < 0 ? 0 : (size_t)first;
}

/* Returns false when the program is to end. */
static bool press(const struct page *devices, int key)
{
	unsigned int *sort = &top.sort[top.pane];

	if (key == ERR || key == KEY_RESIZE)
		return true;
	if (top.help) {
		top.help = false;
		return true;
	}
	if (top.typing) {
		type_filter(key);
		return true;
	}
	switch (key) {
	case 'q': return false;
	case '?': case 'h': top.help = true; break;
	case '\t': top.pane = !top.pane; break;
	case 's': *sort = (*sort + 1) % ARRAY_SIZE(sort_names[0]); break;
	case 'r': top.reverse[top.pane] = !top.reverse[top.pane]; break;
	case '/': top.typing = true; break;
	case 'a': open_or_close(!any_opened()); break;
	case 'd': options.delay = options.delay < 0.2 ? 0.1 : options.delay / 2; break;
	case 'D': options.delay = options.delay > 1800 ? 3600 : options.delay * 2; break;
	case KEY_UP: case 'k': move_by(devices, -1); break;
	case KEY_DOWN: case 'j': move_by(devices, 1); break;
	case KEY_PPAGE: move_by(devices, -10); break;
	case KEY_NPAGE: move_by(devices, 10); break;
	case KEY_HOME: move_by(devices, -100000); break;
	case KEY_END: move_by(devices, 100000); break;
	case KEY_RIGHT: open_device(devices, 1); break;
	case KEY_LEFT: open_device(devices, 0); break;
	case '\n': case '\r': case KEY_ENTER: open_device(devices, -1); break;
	}
	return true;
}

static void start_screen(void)
{
	if (!newterm(NULL, stdout, stdin))
		error(1, 0, "terminal \"%s\" is not known; use --batch",
		      getenv("TERM") ? getenv("TERM") : "");
	handle_signals(signalled);
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	set_escdelay(50);
	curs_set(0);
	start_colours();
}

static void run_screen(void)
{
	struct page devices = { 0 };
	unsigned long n = 0;
	double next = 0;
	bool going = true;

	refresh_all();
	start_screen();
	open_where_room(LINES, COLS);
	while (going && !ended) {
		double left = next - now();

		if (left <= 0) {
			if (options.count && n++ == options.count)
				break;
			if (next > 0)
				refresh_all();
			left = options.delay;
			next = now() + left;
		}
		devices.cols = page_cols(COLS);
		if (top.help)
			show_help();
		else
			show(&devices);
		refresh();
		/* A signal between the check above and getch() does not wait for long. */
		timeout(left < 1 ? (int)(left * 1000) + 1 : 1000);
		going = press(&devices, getch());
		if (next - now() > options.delay)
			next = now() + options.delay;
	}
	endwin();
	free(devices.line);
}

int main(int argc, char **argv)
{
	bool none;

	setlocale(LC_CTYPE, "");
	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	watch_start();
	if (options.batch || options.json || !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
		run_batch();
	else
		run_screen();
	none = !top.watch.devices.count;
	if (none)
		fputs("neuron-top: " NO_DEVICE "\n", stderr);
	watch_end(&top.watch);
	free(top.order);
	end_by_signal();
	return none;
}
