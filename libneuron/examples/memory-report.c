// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What NEFF files would take of a core, and what a device has left: the table of the
 * runtime, once before anything is loaded and without a device, once of a device.
 *
 *	cc memory-report.c $(pkg-config --cflags --libs neuron)
 */
#include <neuron/neuron.h>

#include "example.h"

int main(int argc, char **argv)
{
	struct neuron_error error = { .size = sizeof(error) };
	struct neuron_plan_opts opts = { .size = sizeof(opts), .error = &error };
	struct neuron_plan plan = { .size = sizeof(plan) };
	struct neuron_report_core core = { .nc = 0 };
	struct neuron_report report = {
		.size = sizeof(report), .lnc = 1, .cores = &core, .nr_cores = 1,
	};
	struct neuron_report_model model = { .id = 1 };
	struct neuron_hbm_stats stats = { .size = sizeof(stats) };
	struct neuron_geometry geometry;
	struct neuron_device *device;
	char *text, size[3][32];
	struct file neff;

	if (argc != 3)
		errx(2, "usage: memory-report INSTANCE FILE.neff");
	neff = map_file(argv[2]);
	check(neuron_instance_geometry(argv[1], &geometry, NULL), argv[1]);
	if (neuron_model_plan(&geometry, neff.bytes, neff.size, &opts, &plan))
		errx(1, "%s: %s", argv[2], error.text);
	neuron_plan_sum(&plan, 1, &opts, 0, &core);
	model.name = plan.name;
	model.usage = plan.parts[0];
	core.models = &model;
	core.nr_models = 1;
	check(neuron_report_table(&report, &text), "report");
	printf("On %s:\n%s", argv[1], text);
	free(text);

	if (neuron_device_open(0, &device))
		return 0;
	check(neuron_hbm_get_stats(device, 0, &stats), "device memory");
	printf("HBM 0 of device 0 here: %s free of %s, %s in one piece\n",
	       neuron_report_size(stats.free, size[0], sizeof(size[0])),
	       neuron_report_size(stats.total, size[1], sizeof(size[1])),
	       neuron_report_size(stats.largest_free, size[2], sizeof(size[2])));
	neuron_device_close(device);
	return 0;
}
