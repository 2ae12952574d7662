// SPDX-License-Identifier: LGPL-2.1-or-later
/* Memory that is reserved and not used, for allocations that the driver refuses (device.h). */
#include "../../common/lock.h"
#include "device.h"

void device_add_reserve(struct neuron_device *device, struct reserve *reserve)
{
	GUARD(&device->reserves_lock);
	reserve->prev = NULL;
	reserve->next = device->reserves;
	if (reserve->next)
		reserve->next->prev = reserve;
	device->reserves = reserve;
}

void device_remove_reserve(struct neuron_device *device, struct reserve *reserve)
{
	GUARD(&device->reserves_lock);
	*(reserve->prev ? &reserve->prev->next : &device->reserves) = reserve->next;
	if (reserve->next)
		reserve->next->prev = reserve->prev;
}

bool device_reclaim(struct neuron_device *device, uint32_t hbm)
{
	bool some = false;

	GUARD(&device->reserves_lock);
	for (struct reserve *r = device->reserves; r; r = r->next)
		some |= r->hbm == hbm && r->give_back(r);
	return some;
}
