// SPDX-License-Identifier: GPL-2.0-only
/* An end for messages between hosts: one thread at a time is in libfabric. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../../libneuron/nrt/cc/fabric.c"

#ifdef NRT_FABRIC

static struct fabric *end;
static unsigned int calls, outside;	/* of these, those that another thread could be beside */

/* From the call of a provider: the lock has to be held. */
static void called(void)
{
	calls++;
	if (pthread_mutex_trylock(&end->lock) == EBUSY)
		return;
	outside++;
	pthread_mutex_unlock(&end->lock);
}

/* ---- a provider whose messages arrive at once -------------------------------------- */

static int close_memory(struct fid *fid)
{
	(void)fid;
	called();
	return 0;
}

static struct fi_ops memory_calls = { .size = sizeof(memory_calls), .close = close_memory };
static struct fid_mr memory = { .fid = { .ops = &memory_calls }, .mem_desc = &memory };

static uint64_t last_key;

static int register_memory(struct fid *fid, const struct fi_mr_attr *attr, uint64_t flags,
			   struct fid_mr **mr)
{
	(void)fid;
	(void)flags;
	called();
	assert_int_equal(attr->iface, FI_HMEM_SYSTEM);
	/* Most providers have one of a key. */
	if (attr->requested_key == last_key)
		return -FI_ENOKEY;
	last_key = attr->requested_key;
	*mr = &memory;
	return 0;
}

static int insert_name(struct fid_av *av, const void *name, size_t count, fi_addr_t *number,
		       uint64_t flags, void *context)
{
	(void)av;
	(void)name;
	(void)flags;
	(void)context;
	called();
	*number = 7;
	return (int)count;
}

static void *sent;	/* the request, until its end was read */

static ssize_t send_tagged(struct fid_ep *ep, const void *bytes, size_t size, void *desc,
			   fi_addr_t to, uint64_t tag, void *context)
{
	(void)ep;
	(void)bytes;
	(void)size;
	(void)desc;
	(void)to;
	(void)tag;
	called();
	sent = context;
	return 0;
}

static ssize_t read_queue(struct fid_cq *cq, void *out, size_t count)
{
	struct fi_cq_tagged_entry *entry = out;

	(void)cq;
	(void)count;
	called();
	if (!sent)
		return -FI_EAGAIN;
	*entry = (struct fi_cq_tagged_entry){ .op_context = sent, .flags = FI_SEND };
	sent = NULL;
	return 1;
}

static int setup(void **state)
{
	static struct fi_ops_mr mr = { .size = sizeof(mr), .regattr = register_memory };
	static struct fi_ops_av names = { .size = sizeof(names), .insert = insert_name };
	static struct fi_ops_cq queue = { .size = sizeof(queue), .read = read_queue };
	static struct fi_ops_tagged tagged = { .size = sizeof(tagged), .send = send_tagged };
	static struct fi_domain_attr attr = { .mr_mode = FI_MR_LOCAL };
	static struct fi_info info = { .domain_attr = &attr };
	static struct fid_domain domain = { .mr = &mr };
	static struct fid_av av = { .ops = &names };
	static struct fid_cq cq = { .ops = &queue };
	static struct fid_ep ep = { .tagged = &tagged };

	(void)state;
	end = calloc(1, sizeof(*end));
	if (!end)
		return -1;
	end->info = &info;
	end->domain = &domain;
	end->av = &av;
	end->cq = &cq;
	end->ep = &ep;
	end->free = end->requests;
	calls = outside = 0;
	return pthread_mutex_init(&end->lock, NULL) || pthread_cond_init(&end->changed, NULL);
}

static int teardown(void **state)
{
	(void)state;
	pthread_cond_destroy(&end->changed);
	pthread_mutex_destroy(&end->lock);
	free(end);
	return 0;
}

/* ---- an end that does not take what its provider is said to --------------------------- */

static struct fi_fabric_attr with_devices, without;
static struct fabric opening;
static int opened, refused;

static int close_fabric(struct fid *fid)
{
	(void)fid;
	opened--;
	return 0;
}

static int refuse_domain(struct fid_fabric *fabric, struct fi_info *info,
			 struct fid_domain **domain, void *context)
{
	(void)fabric;
	(void)domain;
	(void)context;
	refused++;
	return info->fabric_attr == &with_devices ? -FI_ENOSYS : -FI_ENOMEM;
}

static int open_fabric(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context)
{
	static struct fi_ops calls_of = { .size = sizeof(calls_of), .close = close_fabric };
	static struct fi_ops_fabric ops = { .size = sizeof(ops), .domain = refuse_domain };
	static struct fid_fabric one = { .fid = { .ops = &calls_of }, .ops = &ops };

	(void)context;
	assert_ptr_equal(attr, refused ? &without : &with_devices);
	opened++;
	*fabric = &one;
	return 0;
}

static void test_without_devices(void **state)
{
	struct fi_info plain = { .fabric_attr = &without }, hmem = { .fabric_attr = &with_devices };

	(void)state;
	lib.fabric = open_fabric;
	opening = (struct fabric){ .plain = &plain, .hmem = &hmem };
	assert_int_equal(open_best(&opening), -FI_ENOMEM);
	assert_int_equal(refused, 2);
	assert_int_equal(opened, 1);
	assert_ptr_equal(opening.info, &plain);
	close_end(&opening);
	assert_int_equal(opened, 0);
}

static bool never(void *arg)
{
	(void)arg;
	return false;
}

/* Another channel's thread may be reading what has arrived. */
static void test_memory(void **state)
{
	struct fabric_memory m = { .size = 64 }, other = { .size = 64 };

	(void)state;
	last_key = UINT64_MAX;
	assert_int_equal(fabric_register(end, &m), 0);
	assert_ptr_equal(m.desc, &memory);
	assert_int_equal(fabric_register(end, &other), 0);
	fabric_unregister(end, &other);
	fabric_unregister(end, &m);
	assert_null(m.registration);
	assert_null(m.desc);
	assert_int_equal(calls, 4);
	assert_int_equal(outside, 0);
	/* It is not registered any more, and there may be no end. */
	fabric_unregister(end, &m);
	fabric_unregister(NULL, &m);
	assert_int_equal(calls, 4);
}

static void test_messages(void **state)
{
	struct fabric_watch watch = { .deadline = deadline_in(10000), .fd = -1, .broken = never };
	struct fabric_memory m = { .size = 64 };
	struct fabric_request *r;
	uint64_t peer;

	(void)state;
	assert_int_equal(fabric_peer(end, "name", &peer), 0);
	assert_int_equal(fabric_send(end, peer, 1, &m, 0, 64, &watch, &r), NRT_SUCCESS);
	assert_int_equal(fabric_wait(end, r, &watch), NRT_SUCCESS);
	fabric_progress(end);
	/* One for each: what has come is all that there was, and is not waited for again. */
	assert_int_equal(calls, 4);
	assert_int_equal(outside, 0);
}

/* Libraries that it brings take some when they are loaded, at the latest for the first end. */
static void test_signals(void **state)
{
	struct sigaction was[NSIG], now;
	char name[256];
	size_t size = sizeof(name);
	struct fabric *f = NULL;

	(void)state;
	for (int i = 1; i < NSIG; i++)
		sigaction(i, NULL, &was[i]);
	if (fabric_missing())
		fail_msg("%s", fabric_missing());
	assert_int_equal(fabric_open(&f, "127.0.0.1", name, &size), 0);
	fabric_close(f);
	for (int i = 1; i < NSIG; i++)
		if (!sigaction(i, NULL, &now) && now.sa_handler != was[i].sa_handler)
			fail_msg("signal %d", i);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_without_devices),
		cmocka_unit_test_setup_teardown(test_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(test_messages, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

static void test_not_built(void **state)
{
	struct fabric_memory m = { .size = 64 };

	(void)state;
	assert_non_null(fabric_missing());
	assert_int_equal(fabric_register(NULL, &m), -ENOSYS);
	fabric_unregister(NULL, &m);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_not_built) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
