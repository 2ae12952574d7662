// SPDX-License-Identifier: GPL-2.0-only
/* Where devices and memory are, through libnrt; and what says that there is no such thing. */
#include <nrt/ndebug_stream.h>
#include <nrt/nrt.h>
#include <nrt/nrt_async_sendrecv.h>
#include <nrt/nrt_experimental.h>

#include "check.h"

#define SIZE	(64u << 10)

static void memory(nrt_tensor_placement_t placement, const char *what)
{
	char data[100], got[100], bdf[32];
	nrt_tensor_t *tensor = NULL;
	size_t len = sizeof(bdf);
	char *va;

	memset(data, placement + 7, sizeof(data));
	CHECK(nrt_tensor_allocate(placement, 0, SIZE, "t", &tensor) == NRT_SUCCESS, "%s", what);
	va = nrt_tensor_get_va(tensor);
	CHECK(va && nrt_memcpy_to_device(va + SIZE - 100, data, 100) == NRT_SUCCESS &&
	      nrt_tensor_read(tensor, got, SIZE - 100, 100) == NRT_SUCCESS &&
	      !memcmp(got, data, 100), "%s: written through its address", what);
	CHECK(nrt_memcpy_to_device(va + SIZE - 99, data, 100) == NRT_INVALID &&
	      nrt_memcpy_to_device(va - 1, data, 1) == NRT_INVALID &&
	      nrt_memcpy_to_device(va, data, ~(size_t)0) == NRT_INVALID &&
	      nrt_memcpy_to_device(data, data, 1) == NRT_INVALID, "%s: not beyond it", what);
	CHECK(nrt_get_attached_efa_bdf(va, bdf, &len) == NRT_FAILURE &&
	      nrt_get_attached_efa_bdf(data, bdf, &len) == NRT_INVALID && len == sizeof(bdf),
	      "%s: no adapter near a device on no bus", what);
	nrt_tensor_free(&tensor);
	CHECK(nrt_memcpy_to_device(va, data, 1) == NRT_INVALID, "%s: not when it is gone", what);
}

int main(void)
{
	uint32_t id = 99, map[64], n = 64, hbm;
	ndebug_stream_event_header_t header;
	nrt_async_sendrecv_comm_t *comm;
	int stream = -1;
	void *va = NULL;
	size_t size = 0;

	setenv("NEURON_RT_VISIBLE_CORES", "0", 1);
	CHECK(nrt_host_device_id_get(0, &id) == NRT_UNINITIALIZED, "not before nrt_init()");
	CHECK(nrt_init(NRT_FRAMEWORK_TYPE_NO_FW, "", "") == NRT_SUCCESS, "nrt_init()");
	CHECK(nrt_host_device_id_get(0, &id) == NRT_SUCCESS && id == 0, "device 0 is %u", id);
	CHECK(nrt_host_device_id_get(63, &id) == NRT_INVALID && id == 0, "there is no device 63");
	CHECK(nrt_host_device_id_rid_map_get(&n, map) == NRT_SUCCESS && n >= 1 &&
	      map[0] != 0xffffffff, "routing ids of %u devices", n);
	n = 0;
	CHECK(nrt_host_device_id_rid_map_get(&n, NULL) == NRT_RESOURCE && n, "a map that is too short");
	for (hbm = 0; nrt_get_hbm_mmap_va(0, (int)hbm, &va, &size) == NRT_INVALID && hbm < 100; hbm++)
		;
	CHECK(hbm && hbm < 100 && !va && !size &&
	      nrt_get_hbm_mmap_va(0, (int)hbm, &va, &size) == NRT_INVALID_HANDLE,
	      "none of %u memories is mapped as a whole", hbm);
	memory(NRT_TENSOR_PLACEMENT_DEVICE, "device");
	memory(NRT_TENSOR_PLACEMENT_HOST, "host");
	CHECK(nrt_debug_client_connect(0, &stream) == NRT_FAILURE && stream == -1 &&
	      nrt_debug_client_read_one_event(stream, &header, &va) == NRT_INVALID,
	      "there is no debug stream");
	CHECK(nrt_async_sendrecv_init(0) == NRT_FAILURE &&
	      nrt_async_sendrecv_connect("10.0.0.1", 0, 0, &comm) == NRT_RESOURCE,
	      "nothing is sent to other hosts");
	nrt_close();
	return failed != 0;
}
