// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * neuron-ls: which Neuron devices there are, how they are linked and who uses them.
 *
 * Nothing but sysfs, /proc and ioctls that need no right to use the device, so that it
 * works beside anything and on other drivers of the same interface.
 */
#include <argp.h>
#include <errno.h>
#include <error.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <sys/ioctl.h>

#include <jansson.h>

#include <neuron/neuron.h>

#include "../../uapi/neuron_ioctl.h"
#include "../../uapi/neuron_native.h"
#include "../common/access.h"
#include "file.h"
#include "options.h"
#include "processes.h"
#include "table.h"

#define MAX_LINKS 8

struct device {
	struct neuron_device_entry entry;
	bool emulated;
	uint64_t memory;		/* bytes, 0 unknown */
	unsigned int links[MAX_LINKS];
	unsigned int nr_links;
	char bdf[16];			/* "" unknown */
	char driver[32];		/* version, "" unknown */
	int32_t owner[NEURON_MAX_CORES];	/* of core_owners(); 0 also: unknown */
};

static struct {
	bool json;
	bool topology;
	unsigned int lnc;		/* 0: what the device has by default */
} options;

TOOL_VERSION("neuron-ls");

static const struct argp_option argp_options[] = {
	{ "json", 'j', NULL, 0, "Print JSON", 0 },
	{ "topology", 't', NULL, 0, "Only print how the devices are linked", 0 },
	{ "lnc", 'l', "N", 0, "Physical cores of a logical core, 1 or 2", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	switch (key) {
	case 'j': options.json = true; return 0;
	case 't': options.topology = true; return 0;
	case 'l':
		if (strcmp(arg, "1") && strcmp(arg, "2"))
			argp_error(state, "--lnc is 1 or 2, not \"%s\"", arg);
		options.lnc = (unsigned int)(*arg - '0');
		return 0;
	default: return nothing_follows(key, arg, state);
	}
}

static const struct argp argp = {
	.options = argp_options,
	.parser = parse,
	.doc = "List Neuron devices: cores, memory, where they are, which processes use them and "
	       "how they are linked.",
};

/* ---- what there is ------------------------------------------------------------------- */

/* The first line of a file of a device, or of its PCI function; "" if there is none. */
static const char *attr(const char *dir, const char *device, const char *name)
{
	static char text[256];
	char path[600];

	snprintf(path, sizeof(path), "%s%s/%s", dir, device, name);
	read_short(path, text, sizeof(text));
	text[strcspn(text, "\n")] = 0;
	return text;
}

static void read_links(struct device *d)
{
	const char *at = attr("", d->entry.syspath, "connected_devices");
	unsigned int n;
	int used;

	while (d->nr_links < MAX_LINKS && sscanf(at, "%u%n", &n, &used) == 1) {
		d->links[d->nr_links++] = n;
		at += used;
		at += strspn(at, ", ");
	}
}

/* A descriptor for looking needs no place among the processes that use the device. */
static void ask_driver(struct device *d)
{
	struct neuron_native_geometry g = { .size = sizeof(g) };
	struct neuron_ioctl_device_bdf_ext bdf = { .nd_index = 0 };
	struct neuron_geometry known;
	int fd = open(d->entry.path, O_WRONLY | O_CLOEXEC);

	if (fd >= 0 && !ioctl(fd, NEURON_IOCTL_DEVICE_BDF_EXT, &bdf))
		snprintf(d->bdf, sizeof(d->bdf), "%04x:%02x:%02x.%x", bdf.domain & 0xffff,
			 bdf.bus_number & 0xff, bdf.slot & 0x1f, bdf.func & 7);
	if (fd >= 0 && !ioctl(fd, NEURON_NATIVE_GET_GEOMETRY, &g)) {
		for (uint32_t i = 0; i < g.nr_hbms && i < NEURON_NATIVE_MAX_HBMS; i++)
			d->memory += g.hbm[i].size;
		core_owners(fd, g.nr_cores, d->owner);
	} else if (!neuron_instance_geometry(d->entry.instance, &known, NULL)) {
		/* Another driver does not tell; the kind of device does. */
		for (uint32_t i = 0; i < known.nr_hbms; i++)
			d->memory += known.hbm[i].size;
	}
	if (fd >= 0)
		close(fd);
}

static void read_device(struct device *d, const struct neuron_device_entry *entry)
{
	char text[64];

	d->entry = *entry;
	d->emulated = atoi(attr("", d->entry.syspath, "emulated")) == 1;
	read_links(d);
	ask_driver(d);
	if (read_short("/sys/module/neuron/version", text, sizeof(text)))
		snprintf(d->driver, sizeof(d->driver), "%.*s", (int)strcspn(text, "\n"), text);
}

static unsigned int lnc(const struct device *d)
{
	return logical_core(d->entry.instance, d->entry.nr_cores, options.lnc);
}

/* ---- topology ------------------------------------------------------------------------ */

static bool linked(const struct device *d, unsigned int other)
{
	for (unsigned int i = 0; i < d->nr_links; i++)
		if (d->links[i] == other)
			return true;
	return false;
}

/* Are the devices a torus of @cols columns, numbered row by row? */
static bool is_torus(const struct device *list, size_t n, size_t cols)
{
	size_t rows = n / cols;

	for (size_t i = 0; i < n; i++) {
		size_t row = i / cols, col = i % cols;

		if (list[i].entry.index != list[0].entry.index + i ||
		    !linked(&list[i], list[row * cols + (col + 1) % cols].entry.index) ||
		    !linked(&list[i], list[row * cols + (col + cols - 1) % cols].entry.index) ||
		    !linked(&list[i], list[(row + 1) % rows * cols + col].entry.index) ||
		    !linked(&list[i], list[(row + rows - 1) % rows * cols + col].entry.index))
			return false;
	}
	return true;
}

/* Lines of a drawing; plain where the terminal has no others. */
struct strokes {
	const char *across;
	const char *down;
};

static struct strokes strokes(void)
{
	bool utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");

	return (struct strokes){ utf8 ? "──" : "--", utf8 ? "│" : "|" };
}

static void print_torus(const struct device *list, size_t n, size_t cols)
{
	struct strokes s = strokes();

	printf("Links: a torus of %zu x %zu; what leaves at an edge comes in at the other.\n\n",
	       n / cols, cols);
	for (size_t row = 0; row <= n / cols; row++) {
		printf("  ");
		for (size_t col = 0; col < cols; col++)
			printf("     %s ", s.down);
		putchar('\n');
		if (row == n / cols)
			break;
		printf("  %s", s.across);
		for (size_t col = 0; col < cols; col++)
			printf("[%3u]%s", list[row * cols + col].entry.index, s.across);
		putchar('\n');
	}
}

/* Devices in a row: the first number, and how many follow each other. */
static size_t chain(const struct device *list, size_t n)
{
	size_t len = 1;

	while (len < n && list[len].nr_links <= 2 && list[len - 1].nr_links <= 2 &&
	       linked(&list[len], list[len - 1].entry.index))
		len++;
	return len;
}

static void print_chain(const struct device *list, size_t n)
{
	struct strokes s = strokes();
	bool ring = n > 2 && linked(&list[0], list[n - 1].entry.index);

	printf("Links: a %s of %zu.\n\n  %s", ring ? "ring" : "chain", n, ring ? s.across : "  ");
	for (size_t i = 0; i < n; i++)
		printf("[%u]%s", list[i].entry.index, i + 1 < n || ring ? s.across : "");
	putchar('\n');
}

/* In pieces that hang together, if they can be drawn; else as a list. */
static void print_topology(const struct device *list, size_t n)
{
	size_t cols, i, len;
	bool any = false;

	for (i = 0; i < n; i++)
		any |= list[i].nr_links > 0;
	if (!any) {
		puts("Links: none.");
		return;
	}
	for (cols = 2; cols * 2 <= n; cols++)
		if (n % cols == 0 && cols >= n / cols && is_torus(list, n, cols)) {
			print_torus(list, n, cols);
			return;
		}
	for (i = 0; i < n; i += len) {
		len = chain(list + i, n - i);
		if (len > 1) {
			print_chain(list + i, len);
			continue;
		}
		printf("Links of neuron%u:", list[i].entry.index);
		for (unsigned int k = 0; k < list[i].nr_links; k++)
			printf(" %u", list[i].links[k]);
		puts(list[i].nr_links ? "" : " none");
	}
}

/* ---- for people ---------------------------------------------------------------------- */

static const char *size_text(uint64_t bytes)
{
	static char text[8][24];
	static unsigned int next;
	char *out = text[next++ % 8];
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	double value = (double)bytes;
	unsigned int unit = 0;

	for (; value >= 1024 && unit < 4; unit++)
		value /= 1024;
	snprintf(out, sizeof(text[0]), value < 100 && value != (double)(uint64_t)value ?
		 "%.1f %s" : "%.0f %s", value, units[unit]);
	return out;
}

static void print_devices(const struct device *list, size_t n)
{
	struct libscols_table *t = table("DEVICE\tCHIP\tCORES\tNC IDS\tLNC\tMEMORY\tLINKS\tPLACE",
					 "llrrrrll");
	unsigned int first = 0;
	char links[MAX_LINKS * sizeof("4294967295,")];

	for (size_t i = 0; i < n; i++) {
		const struct device *d = &list[i];
		unsigned int cores = d->entry.nr_cores / lnc(d);
		size_t len = 0;

		links[0] = 0;
		for (unsigned int k = 0; k < d->nr_links; k++)
			len += (size_t)snprintf(links + len, sizeof(links) - len, "%s%u",
						len ? "," : "", d->links[k]);
		row(t, "neuron%u\t%s\t%u\t%s\t%u\t%s\t%s\t%s%s%s", d->entry.index, d->entry.name,
		    d->entry.nr_cores, core_range(first, cores), lnc(d),
		    d->memory ? size_text(d->memory) : "", links, d->bdf,
		    *d->bdf && d->emulated ? ", " : "", d->emulated ? "software device" : "");
		first += cores;
	}
	print_table(t);
}

static void print_processes(const struct device *list, size_t n, const struct processes *all)
{
	struct libscols_table *t;
	bool outside = false;

	for (size_t i = 0; i < n; i++)
		for (unsigned int c = 0; c < NEURON_MAX_CORES; c++)
			outside |= list[i].owner[c] == NEURON_OWNER_OUTSIDE;
	if (!all->count && !outside) {
		puts(finds_all() ? "No process uses them." :
				   "No process that you may see uses them.");
		return;
	}
	t = table("DEVICE\tPID\tCORES\tDEVICE MEMORY\tHOST MEMORY\tCOMMAND", "lrlrrt");
	for (size_t i = 0; i < n; i++) {
		const char *cores;

		for (size_t k = 0; k < all->count; k++) {
			const struct process *p = &all->list[k];

			if (p->device == list[i].entry.index)
				row(t, "neuron%u\t%d\t%s\t%s\t%s\t%s", p->device, p->pid,
				    owned_cores(list[i].owner, list[i].entry.nr_cores, p->pid),
				    p->client ? size_text(p->device_bytes) : "",
				    p->client ? size_text(p->host_bytes) : "", p->command);
		}
		cores = owned_cores(list[i].owner, list[i].entry.nr_cores, NEURON_OWNER_OUTSIDE);
		if (strcmp(cores, "-"))
			row(t, "neuron%u\toutside\t%s\t\t\t", list[i].entry.index, cores);
	}
	print_table(t);
}

static void print_text(const struct device *list, size_t n, const struct processes *all)
{
	if (!options.topology) {
		printf("%zu Neuron device%s, %s%s%s\n\n", n, n == 1 ? "" : "s",
		       *list[0].entry.instance ? list[0].entry.instance : "unknown kind",
		       *list[0].driver ? ", driver " : "", list[0].driver);
		print_devices(list, n);
		putchar('\n');
		print_processes(list, n, all);
		putchar('\n');
	}
	print_topology(list, n);
}

/* ---- for programs -------------------------------------------------------------------- */

static const char *pci_attr(const struct device *d, const char *name)
{
	return d->emulated || !*d->bdf ? "" : attr("/sys/bus/pci/devices/", d->bdf, name);
}

static json_t *processes_json(const struct device *d, const struct processes *all)
{
	json_t *procs = json_array();

	for (size_t i = 0; i < all->count; i++) {
		const struct process *p = &all->list[i];

		if (p->device == d->entry.index)
			json_array_append_new(procs, json_pack(
				"{s:i, s:s, s:s, s:I, s:I}", "pid", p->pid, "command", p->command,
				"neuron_runtime_version", "", "device_bytes",
				INT(p->device_bytes), "host_bytes", INT(p->host_bytes)));
	}
	return procs;
}

static json_t *device_json(const struct device *d, unsigned int first, const struct processes *all)
{
	json_t *links = json_array(), *ids = json_array();
	unsigned int cores = d->entry.nr_cores / lnc(d);
	char cpus[256];
	const char *numa;

	for (unsigned int i = 0; i < d->nr_links; i++)
		json_array_append_new(links, json_integer(d->links[i]));
	for (unsigned int i = 0; i < cores; i++)
		json_array_append_new(ids, json_integer(first + i));
	snprintf(cpus, sizeof(cpus), "%s", pci_attr(d, "local_cpulist"));
	numa = pci_attr(d, "numa_node");
	return json_pack("{s:i, s:s, s:s, s:s, s:o, s:I, s:I, s:I, s:o, s:o, s:b, s:i}",
			 "neuron_device", (int)d->entry.index, "bdf", d->bdf, "cpu_affinity", cpus,
			 "numa_node", *numa ? numa : "-1", "connected_to", links,
			 "nc_count", INT(cores), "logical_neuroncore_config", INT(lnc(d)),
			 "memory_size", INT(d->memory), "neuroncore_ids", ids,
			 "neuron_processes", processes_json(d, all),
			 "emulated", (int)d->emulated, "schema_version", 1);
}

static json_t *to_json(const struct device *list, size_t n, const struct processes *all)
{
	json_t *out = json_array();
	unsigned int first = 0;

	for (size_t i = 0; i < n; i++) {
		json_array_append_new(out, device_json(&list[i], first, all));
		first += list[i].entry.nr_cores / lnc(&list[i]);
	}
	return out;
}

int main(int argc, char **argv)
{
	struct neuron_device_entry *entries;
	struct processes all = { 0 };
	struct device *list;
	size_t n;
	int ret;

	setlocale(LC_ALL, "");
	argp_err_exit_status = 2;
	argp_parse(&argp, argc, argv, 0, NULL, NULL);
	ret = neuron_device_list(&entries, &n);
	if (ret)
		error(1, -ret, "looking for devices");
	list = calloc(n + 1, sizeof(*list));
	if (!list || find_processes("/proc", &all))
		error(1, ENOMEM, "devices");
	for (size_t i = 0; i < n; i++)
		read_device(&list[i], &entries[i]);
	neuron_device_list_free(entries);
	if (options.json)
		print_json(to_json(list, n, &all), 1);
	else if (n)
		print_text(list, n, &all);
	if (!n)
		fputs("neuron-ls: " NO_DEVICE "\n", stderr);
	free(all.list);
	free(list);
	end_output(1);
	return !n;
}
