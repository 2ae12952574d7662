// SPDX-License-Identifier: GPL-2.0-only
/*
 * host-check: accuracy of the committed models on the held-out images,
 * computed on the host alone.
 *
 * usage: host-check mnist-heldout.npy.gz MODEL.neff...
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heldout.h"
#include "host_ref.h"

#define WANTED	96.0

static void *read_whole(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	void *data = NULL;
	long n;

	if (!f)
		return NULL;
	if (!fseek(f, 0, SEEK_END) && (n = ftell(f)) > 0 && !fseek(f, 0, SEEK_SET)) {
		data = malloc((size_t)n);
		*size = (size_t)n;
		if (data && fread(data, 1, *size, f) != *size) {
			free(data);
			data = NULL;
		}
	}
	fclose(f);
	return data;
}

static int check(const char *path, const uint8_t *images, size_t nr)
{
	static struct host_model model;
	struct neuron_neff_error e = { .size = sizeof(e) };
	struct neuron_neff_opts o = { .size = sizeof(o), .verify_hash = true, .error = &e };
	struct neuron_neff *neff;
	size_t size, right = 0;
	double percent;
	void *bytes;
	int err;

	bytes = read_whole(path, &size);
	if (!bytes) {
		printf("not ok - %s: cannot read\n", path);
		return 1;
	}
	err = neuron_neff_open(bytes, size, &o, &neff);
	free(bytes);
	if (err) {
		printf("not ok - %s: %s\n", path, e.text);
		return 1;
	}
	err = host_model_init(&model, neff);
	if (!neff->executable)
		err = -EINVAL;
	neuron_neff_close(neff);
	if (err) {
		printf("not ok - %s: not the digit classifier\n", path);
		return 1;
	}
	for (size_t i = 0; i < nr; i++) {
		uint32_t out[HOST_CLASSES];
		const uint8_t *row = images + i * HELDOUT_ROW;

		host_model_run(&model, row, out);
		right += host_model_class(&model, out) == row[HELDOUT_PIXELS];
	}
	percent = 100.0 * (double)right / (double)nr;
	printf("%s - %s: %zu of %zu digits right, %.2f %%\n",
	       percent >= WANTED ? "ok" : "not ok", path, right, nr, percent);
	return percent < WANTED;
}

int main(int argc, char **argv)
{
	int failed = 0;
	uint8_t *images;
	size_t nr;

	if (argc < 3) {
		fprintf(stderr, "usage: host-check IMAGES MODEL...\n");
		return 2;
	}
	images = heldout_read(argv[1], &nr);
	if (!images) {
		perror(argv[1]);
		return 2;
	}
	for (int i = 2; i < argc; i++)
		failed += check(argv[i], images, nr);
	free(images);
	printf("%d passed, %d failed\n", argc - 2 - failed, failed);
	return failed != 0;
}
