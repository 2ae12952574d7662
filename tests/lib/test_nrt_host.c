// SPDX-License-Identifier: GPL-2.0-only
/* The runtime interface: where devices, adapters and memory are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sys/stat.h>

#include <nrt/nrt.h>
#include <nrt/nrt_experimental.h>

#include "fake_driver.h"

static int setup(void **state)
{
	(void)state;
	fake.nr_devices = 2;
	setenv("NEURON_RT_LOG_LEVEL", "QUIET", 1);
	setenv("NEURON_LOGICAL_NC_CONFIG", "1", 1);
	setenv("NEURON_RT_MAP_HBM", "1", 1);
	return nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") != NRT_SUCCESS;
}

static int teardown(void **state)
{
	(void)state;
	fake.fail_at = 0;
	nrt_close();
	return fake_used() || fake.mapped || fake.dev[0].opens || fake.dev[1].opens;
}

static nrt_tensor_t *tensor(nrt_tensor_placement_t placement, int vnc, size_t size)
{
	nrt_tensor_t *t = NULL;

	assert_int_equal(nrt_tensor_allocate(placement, vnc, size, "t", &t), NRT_SUCCESS);
	return t;
}

static void test_states(void **state)
{
	uint8_t image[4] = { 0 };
	nrt_ucode_info ucode = { { image, 4 }, { image, 4 } };
	uint32_t n = 64, map[64];
	char bdf[32];
	size_t len = sizeof(bdf);
	void *va;

	(void)state;
	setenv("NEURON_RT_LOG_LEVEL", "QUIET", 1);
	for (int i = 0; i < 2; i++) {
		NRT_STATUS want = i ? NRT_CLOSED : NRT_UNINITIALIZED;

		assert_int_equal(nrt_host_device_id_get(0, &n), want);
		assert_int_equal(nrt_host_device_id_rid_map_get(&n, map), want);
		assert_int_equal(nrt_get_hbm_mmap_va(0, 0, &va, &len), want);
		assert_int_equal(nrt_get_attached_efa_bdf(image, bdf, &len), want);
		assert_int_equal(nrt_memcpy_to_device(image, image, 1), want);
		/* Callable, with nothing to be had. */
		assert_int_equal(nrt_set_pool_eng_ucode(&ucode), NRT_FAILURE);
		assert_int_equal(nrt_set_pool_eng_ucode(NULL), NRT_INVALID);
		ucode.iram.size = 0;
		assert_int_equal(nrt_set_pool_eng_ucode(&ucode), NRT_INVALID);
		ucode.iram.size = 4;
		assert_int_equal(setup(NULL), 0);
		assert_int_equal(nrt_set_pool_eng_ucode(&ucode), NRT_FAILURE);
		nrt_close();
	}
}

static void test_ids(void **state)
{
	uint32_t n, map[64] = { 0 };

	(void)state;
	assert_int_equal(nrt_host_device_id_get(1, &n), NRT_SUCCESS);
	assert_int_equal(n, 1);
	n = 77;
	assert_int_equal(nrt_host_device_id_get(2, &n), NRT_INVALID);
	assert_int_equal(nrt_host_device_id_get(-1, &n), NRT_INVALID);
	assert_int_equal(nrt_host_device_id_get(0, NULL), NRT_INVALID);
	assert_int_equal(n, 77);
	n = 2;
	assert_int_equal(nrt_host_device_id_rid_map_get(&n, map), NRT_SUCCESS);
	assert_int_equal(n, 2);
	assert_int_equal(map[0], 0x10);
	assert_int_equal(map[1], 0x11);
	assert_int_equal(map[2], 0);
	n = 0;
	assert_int_equal(nrt_host_device_id_rid_map_get(&n, NULL), NRT_RESOURCE);
	assert_int_equal(n, 2);
	assert_int_equal(nrt_host_device_id_rid_map_get(&n, NULL), NRT_INVALID);
	assert_int_equal(nrt_host_device_id_rid_map_get(NULL, map), NRT_INVALID);
	fake_fail(1, _IOC_NR(NEURON_IOCTL_HOST_DEVICE_ID_TO_RID_MAP), EFAULT);
	assert_int_equal(nrt_host_device_id_rid_map_get(&n, map), NRT_FAILURE);
	assert_int_equal(n, 2);
}

static void test_hbm(void **state)
{
	void *va = &va;
	size_t size = 1;
	int i = 0;

	(void)state;
	/* As programs look for all of them. */
	while (nrt_get_hbm_mmap_va(0, i, &va, &size) != NRT_INVALID_HANDLE)
		assert_int_equal(nrt_get_hbm_mmap_va(0, i++, &va, &size), NRT_INVALID);
	assert_int_equal(i, FAKE_HBMS);
	assert_int_equal(nrt_get_hbm_mmap_va(2, 0, &va, &size), NRT_INVALID);
	assert_int_equal(nrt_get_hbm_mmap_va(-1, 0, &va, &size), NRT_INVALID);
	assert_int_equal(nrt_get_hbm_mmap_va(0, -1, &va, &size), NRT_INVALID);
	assert_int_equal(nrt_get_hbm_mmap_va(0, 0, NULL, &size), NRT_INVALID);
	assert_int_equal(nrt_get_hbm_mmap_va(0, 0, &va, NULL), NRT_INVALID);
	assert_ptr_equal(va, &va);
	assert_int_equal(size, 1);
}

static void test_memcpy(void **state)
{
	nrt_tensor_t *t = tensor(NRT_TENSOR_PLACEMENT_DEVICE, 0, 8192), *slice = NULL;
	nrt_tensor_t *plain = tensor(NRT_TENSOR_PLACEMENT_VIRTUAL, 0, 64);
	char data[16] = "0123456789abcde", got[16];
	char *va = nrt_tensor_get_va(t);

	(void)state;
	assert_non_null(va);
	assert_int_equal(nrt_memcpy_to_device(va + 8176, data, 16), NRT_SUCCESS);
	assert_int_equal(nrt_tensor_read(t, got, 8176, 16), NRT_SUCCESS);
	assert_memory_equal(got, data, 16);
	assert_int_equal(nrt_memcpy_to_device(va + 8177, data, 16), NRT_INVALID);
	assert_int_equal(nrt_memcpy_to_device(va, data, SIZE_MAX), NRT_INVALID);
	assert_int_equal(nrt_memcpy_to_device(va - 1, data, 1), NRT_INVALID);
	assert_int_equal(nrt_memcpy_to_device(va, NULL, 1), NRT_INVALID);
	assert_int_equal(nrt_memcpy_to_device(NULL, data, 1), NRT_INVALID);
	assert_int_equal(nrt_memcpy_to_device(data, data, 1), NRT_INVALID);
	assert_int_equal(nrt_memcpy_to_device(nrt_tensor_get_va(plain), data, 1), NRT_INVALID);
	assert_int_equal(nrt_memcpy_to_device(va, NULL, 0), NRT_SUCCESS);
	/* The address is good for as long as there is any view of the storage. */
	assert_int_equal(nrt_tensor_allocate_slice(t, 0, 16, NULL, &slice), NRT_SUCCESS);
	nrt_tensor_free(&t);
	assert_int_equal(nrt_memcpy_to_device(va, data, 16), NRT_SUCCESS);
	nrt_tensor_free(&slice);
	assert_int_equal(nrt_memcpy_to_device(va, data, 16), NRT_INVALID);
	nrt_tensor_free(&plain);
}

static void pci_device(const char *path, const char *vendor, const char *device)
{
	const char *const names[] = { "vendor", "device" }, *values[] = { vendor, device };
	char dir[256], file[300], link[256], target[300];

	snprintf(dir, sizeof(dir), "build/pci/tree/%s", path);
	mkdir(dir, 0755);
	for (int i = 0; i < 2 && values[i]; i++) {
		FILE *f;

		snprintf(file, sizeof(file), "%s/%s", dir, names[i]);
		f = fopen(file, "w");
		assert_non_null(f);
		fprintf(f, "%s\n", values[i]);
		fclose(f);
	}
	snprintf(link, sizeof(link), "build/pci/devices/%s", strrchr(dir, '/') + 1);
	snprintf(target, sizeof(target), "../tree/%s", path);
	unlink(link);
	assert_int_equal(symlink(target, link), 0);
}

static void test_efa(void **state)
{
	nrt_tensor_t *t = tensor(NRT_TENSOR_PLACEMENT_DEVICE, 0, 4096);
	nrt_tensor_t *other = tensor(NRT_TENSOR_PLACEMENT_HOST, FAKE_CORES, 4096);
	char *va = nrt_tensor_get_va(t), *other_va = nrt_tensor_get_va(other), bdf[32] = "same";
	size_t len = sizeof(bdf);

	(void)state;
	if (system("rm -rf build/pci && mkdir -p build/pci/tree build/pci/devices"))
		fail();
	assert_int_equal(nrt_get_attached_efa_bdf(va, bdf, &len), NRT_FAILURE);
	/* Two bridges, a device and adapters behind each; those of other makers do not count. */
	pci_device("a", NULL, NULL);
	pci_device("b", NULL, NULL);
	pci_device("a/0001:20:1e.0", "0x1d0f", "0x7364");
	pci_device("b/0001:21:1e.0", "0x1d0f", "0x7364");
	assert_int_equal(nrt_get_attached_efa_bdf(va, bdf, &len), NRT_FAILURE);
	pci_device("a/0001:20:1b.0", "0x1d0f", "0xec20");
	pci_device("a/0001:20:1c.0", "0x8086", "0xefa1");
	pci_device("a/0001:20:1d.0", "0x1d0f", "0xefa1");
	pci_device("b/0001:21:1c.0", "0x1d0f", "0xefa2");
	pci_device("b/0001:21:1d.0", "bad", "0xefa2");
	assert_string_equal(bdf, "same");
	assert_int_equal(len, sizeof(bdf));
	assert_int_equal(nrt_get_attached_efa_bdf(va + 4095, bdf, &len), NRT_SUCCESS);
	assert_string_equal(bdf, "0001:20:1d.0");
	assert_int_equal(len, 12);
	assert_int_equal(nrt_get_attached_efa_bdf(other_va, bdf, &len), NRT_RESOURCE);
	assert_int_equal(len, 13);
	assert_string_equal(bdf, "0001:20:1d.0");
	assert_int_equal(nrt_get_attached_efa_bdf(other_va, bdf, &len), NRT_SUCCESS);
	assert_string_equal(bdf, "0001:21:1c.0");
	/* Behind the higher one: the two mappings can be next to each other. */
	assert_int_equal(nrt_get_attached_efa_bdf((va > other_va ? va : other_va) + 4097, bdf, &len),
			 NRT_INVALID);
	assert_int_equal(nrt_get_attached_efa_bdf(bdf, bdf, &len), NRT_INVALID);
	assert_int_equal(nrt_get_attached_efa_bdf(NULL, bdf, &len), NRT_INVALID);
	assert_int_equal(nrt_get_attached_efa_bdf(va, NULL, &len), NRT_INVALID);
	assert_int_equal(nrt_get_attached_efa_bdf(va, bdf, NULL), NRT_INVALID);
	fake_fail(1, _IOC_NR(NEURON_IOCTL_DEVICE_BDF_EXT), ENODEV);
	assert_int_equal(nrt_get_attached_efa_bdf(va, bdf, &len), NRT_FAILURE);
	nrt_tensor_free(&t);
	nrt_tensor_free(&other);
}

static void test_plugin(void **state)
{
	char text[16] = "";
	int err = 0;

	(void)state;
	assert_null(nrt_get_libnccl_net(&err, text, sizeof(text)));
	assert_int_equal(err, NRT_FAILURE);
	assert_string_equal(text, "no network plug");
	assert_null(nrt_get_libnccl_net(NULL, NULL, 100));
	assert_null(nrt_get_libnccl_net(&err, text, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_states, teardown),
		cmocka_unit_test_setup_teardown(test_ids, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hbm, setup, teardown),
		cmocka_unit_test_setup_teardown(test_memcpy, setup, teardown),
		cmocka_unit_test_setup_teardown(test_efa, setup, teardown),
		cmocka_unit_test(test_plugin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
