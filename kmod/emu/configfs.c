// SPDX-License-Identifier: GPL-2.0-only
/*
 * Devices that are added and removed at run time.  README.md has an example.
 *
 * The attributes of a device cannot be changed while it is live.  Setting live to 0
 * removes the device even if it is in use, like pulling out a card.
 */
#include <linux/atomic.h>
#include <linux/configfs.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "configfs.h"
#include "device.h"

/**
 * struct emu_item - a directory
 * @item: in configfs
 * @lock: the rest
 * @cfg: configuration of the device; hbm_size is in bytes
 * @ed: the device, NULL = not live
 */
struct emu_item {
	struct config_item item;
	struct mutex lock;	/* the rest */
	struct emu_config cfg;
	struct emu_device *ed;
};

/* The numbers below 64 belong to the devices from module parameters. */
static atomic_t emu_serials = ATOMIC_INIT(64);

static struct emu_item *to_emu_item(struct config_item *item)
{
	return container_of(item, struct emu_item, item);
}

static void emu_item_kill(struct emu_item *it)
{
	if (it->ed)
		emu_device_free(it->ed);
	it->ed = NULL;
}

/* Change the configuration, unless the device is live.  Return: @count, -EBUSY. */
static ssize_t emu_item_set(struct config_item *item, void *field, const void *value,
			    size_t size, size_t count)
{
	struct emu_item *it = to_emu_item(item);
	ssize_t ret = -EBUSY;

	mutex_lock(&it->lock);
	if (!it->ed) {
		memcpy(field, value, size);
		ret = count;
	}
	mutex_unlock(&it->lock);
	return ret;
}

/* Set a field of the configuration to a value of its type. */
#define EMU_ITEM_SET(item, field, value, count)						\
({											\
	typeof(to_emu_item(item)->cfg.field) value_ = (value);				\
											\
	emu_item_set(item, &to_emu_item(item)->cfg.field, &value_, sizeof(value_), count);	\
})

static ssize_t emu_item_arch_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%s\n", READ_ONCE(to_emu_item(item)->cfg.arch)->name);
}

static ssize_t emu_item_arch_set(struct config_item *item, const char *page, size_t count)
{
	const struct emu_arch *a = emu_find_arch(page);

	return a ? EMU_ITEM_SET(item, arch, a, count) : -EINVAL;
}

static ssize_t emu_item_hbm_size_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%llu\n", READ_ONCE(to_emu_item(item)->cfg.hbm_size) >> 20);
}

static ssize_t emu_item_hbm_size_set(struct config_item *item, const char *page, size_t count)
{
	u32 mib;
	int err = kstrtou32(page, 0, &mib);

	return err ?: EMU_ITEM_SET(item, hbm_size, (u64)mib << 20, count);
}

static ssize_t emu_item_index_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", READ_ONCE(to_emu_item(item)->cfg.index));
}

static ssize_t emu_item_index_set(struct config_item *item, const char *page, size_t count)
{
	int index, err = kstrtoint(page, 0, &index);

	if (!err && (index < -1 || index >= EMU_MAX_DEVICES))
		err = -EINVAL;
	return err ?: EMU_ITEM_SET(item, index, index, count);
}

static ssize_t emu_item_neighbours_show(struct config_item *item, char *page)
{
	struct emu_item *it = to_emu_item(item);
	int len = 0;
	u32 i;

	mutex_lock(&it->lock);
	for (i = 0; i < it->cfg.nr_neighbours; i++)
		len += sysfs_emit_at(page, len, "%s%u", i ? ", " : "", it->cfg.neighbours[i]);
	mutex_unlock(&it->lock);
	return len + sysfs_emit_at(page, len, "\n");
}

/* Numbers separated by commas, blanks or both. */
static int emu_parse_neighbours(char *text, u32 *list)
{
	char *word;
	int n = 0, err;

	while ((word = strsep(&text, " ,\n"))) {
		if (!*word)
			continue;
		if (n == NEURON_HW_MAX_NEIGHBOURS)
			return -E2BIG;
		err = kstrtou32(word, 10, &list[n]);
		if (err)
			return err;
		if (list[n++] >= EMU_MAX_DEVICES)
			return -EINVAL;
	}
	return n;
}

static ssize_t emu_item_neighbours_set(struct config_item *item, const char *page, size_t count)
{
	struct emu_item *it = to_emu_item(item);
	u32 list[NEURON_HW_MAX_NEIGHBOURS] = { 0 };
	char *text = kstrdup(page, GFP_KERNEL);
	int n, err;

	if (!text)
		return -ENOMEM;
	n = emu_parse_neighbours(text, list);
	kfree(text);
	if (n < 0)
		return n;
	mutex_lock(&it->lock);
	err = it->ed ? -EBUSY : 0;
	if (!err) {
		memcpy(it->cfg.neighbours, list, sizeof(list));
		it->cfg.nr_neighbours = n;
	}
	mutex_unlock(&it->lock);
	return err ?: count;
}

static ssize_t emu_item_completion_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%s\n",
			  emu_completion_names[READ_ONCE(to_emu_item(item)->cfg.completion)]);
}

static ssize_t emu_item_completion_set(struct config_item *item, const char *page, size_t count)
{
	int c = sysfs_match_string(emu_completion_names, page);

	return c < 0 ? c : EMU_ITEM_SET(item, completion, c, count);
}

/* 0 or 1; kstrtobool() looks at one character and takes "0x1" for 0. */
static int emu_parse_flag(const char *page, bool *flag)
{
	u8 value;
	int err = kstrtou8(page, 0, &value);

	if (!err && value > 1)
		err = -EINVAL;
	if (!err)
		*flag = value;
	return err;
}

/* An attribute that is one value: @parse reads a @type, @format shows it. */
#define EMU_ITEM_VALUE(field, type, format, parse)					\
static ssize_t emu_item_##field##_show(struct config_item *item, char *page)		\
{											\
	return sysfs_emit(page, format "\n", READ_ONCE(to_emu_item(item)->cfg.field));	\
}											\
											\
static ssize_t emu_item_##field##_set(struct config_item *item, const char *page,	\
				      size_t count)					\
{											\
	type value;									\
	int err = parse;								\
											\
	return err ?: EMU_ITEM_SET(item, field, value, count);				\
}

EMU_ITEM_VALUE(serial, u64, "%016llx", kstrtou64(page, 16, &value))
EMU_ITEM_VALUE(completion_nsec, u64, "%llu", kstrtou64(page, 0, &value))
EMU_ITEM_VALUE(card_like, bool, "%d", emu_parse_flag(page, &value))
EMU_ITEM_VALUE(checks, bool, "%d", emu_parse_flag(page, &value))
EMU_ITEM_VALUE(reset_msec, u32, "%u", kstrtou32(page, 0, &value))

static ssize_t emu_item_dev_name_show(struct config_item *item, char *page)
{
	struct emu_item *it = to_emu_item(item);
	ssize_t ret;

	mutex_lock(&it->lock);
	/* The device may have been removed through debugfs. */
	if (it->ed && READ_ONCE(it->ed->added))
		ret = sysfs_emit(page, "neuron%u\n", it->ed->number);
	else
		ret = sysfs_emit(page, "none\n");
	mutex_unlock(&it->lock);
	return ret;
}

static ssize_t emu_item_live_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", !!READ_ONCE(to_emu_item(item)->ed));
}

/* Under it->lock. */
static int emu_item_start(struct emu_item *it)
{
	struct emu_device *ed;

	/* Checked here, because the valid sizes depend on the kind, which may be set last. */
	if (!emu_hbm_size_valid(it->cfg.arch, it->cfg.hbm_size >> 20))
		return -EINVAL;
	ed = emu_device_new(&it->cfg);
	if (IS_ERR(ed))
		return PTR_ERR(ed);
	it->ed = ed;
	return 0;
}

static ssize_t emu_item_live_set(struct config_item *item, const char *page, size_t count)
{
	struct emu_item *it = to_emu_item(item);
	bool live;
	int err;

	err = emu_parse_flag(page, &live);
	if (err)
		return err;
	mutex_lock(&it->lock);
	if (live == !!it->ed)
		err = -EPERM;
	else if (live)
		err = emu_item_start(it);
	else
		emu_item_kill(it);
	mutex_unlock(&it->lock);
	return err ?: count;
}

/* A line in the kernel log says why a write was refused: the shell shows no more than a number. */
static ssize_t emu_item_stored(struct config_item *item, const char *name, const char *page,
			       ssize_t ret)
{
	int len = min_t(int, strcspn(page, "\n"), 40);

	if (ret < 0)
		pr_notice_ratelimited("neuron_emu: %s/%s: \"%*pE\" is refused: %s (error %zd)\n",
				      config_item_name(item), name, len, page,
				      ret == -EPERM ? "it is so already" :
				      ret == -EBUSY ? "the device is live, or its number is taken" :
				      ret == -EEXIST ? "another device has its serial number" :
				      ret == -ENOSPC ? "no number is left" :
				      ret == -ENOMEM ? "the host has no memory for it" :
				      !strcmp(name, "live") ?
				      "no valid value, or hbm_size is none of this arch" :
				      "no valid value", ret);
	return ret;
}

#define EMU_ITEM_ATTR(name)								\
static ssize_t emu_item_##name##_store(struct config_item *item, const char *page,	\
				       size_t count)					\
{											\
	return emu_item_stored(item, #name, page, emu_item_##name##_set(item, page, count)); \
}											\
											\
CONFIGFS_ATTR(emu_item_, name)

EMU_ITEM_ATTR(arch);
EMU_ITEM_ATTR(hbm_size);
EMU_ITEM_ATTR(index);
EMU_ITEM_ATTR(serial);
EMU_ITEM_ATTR(neighbours);
EMU_ITEM_ATTR(completion);
EMU_ITEM_ATTR(completion_nsec);
EMU_ITEM_ATTR(card_like);
EMU_ITEM_ATTR(checks);
EMU_ITEM_ATTR(reset_msec);
CONFIGFS_ATTR_RO(emu_item_, dev_name);
EMU_ITEM_ATTR(live);

static struct configfs_attribute *emu_item_attrs[] = {
	&emu_item_attr_arch,
	&emu_item_attr_hbm_size,
	&emu_item_attr_index,
	&emu_item_attr_serial,
	&emu_item_attr_neighbours,
	&emu_item_attr_completion,
	&emu_item_attr_completion_nsec,
	&emu_item_attr_card_like,
	&emu_item_attr_checks,
	&emu_item_attr_reset_msec,
	&emu_item_attr_dev_name,
	&emu_item_attr_live,
	NULL,
};

static void emu_item_release(struct config_item *item)
{
	struct emu_item *it = to_emu_item(item);

	emu_item_kill(it);
	mutex_destroy(&it->lock);
	kfree(it);
}

static struct configfs_item_operations emu_item_ops = {
	.release = emu_item_release,
};

static const struct config_item_type emu_item_type = {
	.ct_item_ops = &emu_item_ops,
	.ct_attrs = emu_item_attrs,
	.ct_owner = THIS_MODULE,
};

static struct config_item *emu_make_item(struct config_group *group, const char *name)
{
	struct emu_item *it = kzalloc(sizeof(*it), GFP_KERNEL);

	if (!it)
		return ERR_PTR(-ENOMEM);
	mutex_init(&it->lock);
	it->cfg.arch = emu_find_arch("trn2");
	it->cfg.index = -1;
	it->cfg.checks = true;
	it->cfg.completion_nsec = EMU_COMPLETION_NSEC;
	it->cfg.serial = EMU_SERIAL((u32)atomic_inc_return(&emu_serials) - 1);
	config_item_init_type_name(&it->item, name, &emu_item_type);
	return &it->item;
}

static struct configfs_group_operations emu_group_ops = {
	.make_item = emu_make_item,
};

static const struct config_item_type emu_group_type = {
	.ct_group_ops = &emu_group_ops,
	.ct_owner = THIS_MODULE,
};

static struct configfs_subsystem emu_subsys = {
	.su_group = {
		.cg_item = {
			.ci_namebuf = "neuron_emu",
			.ci_type = &emu_group_type,
		},
	},
};

static bool emu_configfs_ready;

/**
 * emu_configfs_init() - make /sys/kernel/config/neuron_emu
 *
 * Return: 0, or an error of configfs, which was logged.
 */
int __init emu_configfs_init(void)
{
	int err;

	config_group_init(&emu_subsys.su_group);
	mutex_init(&emu_subsys.su_mutex);
	err = configfs_register_subsystem(&emu_subsys);
	if (err)
		pr_err("neuron_emu: no configfs: error %d\n", err);
	emu_configfs_ready = !err;
	return err;
}

/**
 * emu_configfs_exit() - remove that directory, if it was made
 *
 * A directory in it would hold a reference on the module, so it is empty.
 */
void emu_configfs_exit(void)
{
	if (emu_configfs_ready)
		configfs_unregister_subsystem(&emu_subsys);
}
