// SPDX-License-Identifier: GPL-2.0-only
/*
 * A module that misbehaves on request. The rig's self-test loads it in the
 * debug kernel and passes only if the rig reports the right failure.
 */

#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

static char *fault = "none";
module_param(fault, charp, 0444);
MODULE_PARM_DESC(fault, "what to do wrong when loaded");

static DEFINE_MUTEX(lock_a);
static DEFINE_MUTEX(lock_b);
static DEFINE_SPINLOCK(spin);

/* Written through, so that the compiler cannot see what is wrong. */
static volatile int zero;
static volatile int big = 40;
static void *volatile kept;

static void do_oops(void)
{
	int *p = (int *)(unsigned long)zero;

	*(volatile int *)p = 1;
}

static void do_warn(void)
{
	WARN(!zero, "faulty: warning on request\n");
}

static void do_kasan(void)
{
	char *p = kmalloc(64, GFP_KERNEL);

	if (!p)
		return;
	((volatile char *)p)[64 + zero] = 1;
	kfree(p);
}

static void do_ubsan(void)
{
	big = 1 << big;
}

static void do_lockdep(void)
{
	mutex_lock(&lock_a);
	mutex_lock(&lock_b);
	mutex_unlock(&lock_b);
	mutex_unlock(&lock_a);

	mutex_lock(&lock_b);
	mutex_lock(&lock_a);
	mutex_unlock(&lock_a);
	mutex_unlock(&lock_b);
}

static void do_rcu(void)
{
	static void __rcu *looked_up;

	rcu_dereference(looked_up);
}

static void do_atomic_sleep(void)
{
	spin_lock(&spin);
	msleep(1);
	spin_unlock(&spin);
}

/* Larger than the stack garbage a pointer could hide in, and many of them. */
static void do_leak(void)
{
	int i;

	for (i = 0; i < 32; i++)
		kept = kmalloc(100, GFP_KERNEL);
	kept = NULL;
}

static void do_soft_lockup(void)
{
	preempt_disable();
	for (;;)
		cpu_relax();
}

static int stuck(void *unused)
{
	set_current_state(TASK_UNINTERRUPTIBLE);
	schedule();
	return 0;
}

static void do_hung_task(void)
{
	kthread_run(stuck, NULL, "faulty-stuck");
}

/* Halted, not in a loop, so that other tests have the host's processors meanwhile. */
static void do_dead(void)
{
	local_irq_disable();
	for (;;)
		asm volatile("hlt");
}

static int raced;

static int race(void *unused)
{
	unsigned long end = jiffies + 20 * HZ;

	while (time_before(jiffies, end)) {
		raced++;
		barrier();
		cond_resched();
	}
	return 0;
}

/* Their code may go only when both have ended. */
static void do_race(void)
{
	struct task_struct *other = kthread_run(race, NULL, "faulty-race");

	if (IS_ERR(other))
		return;
	get_task_struct(other);
	race(NULL);
	kthread_stop(other);
	put_task_struct(other);
}

static void do_uninit(void)
{
	volatile int *p = kmalloc(sizeof(*p), GFP_KERNEL);

	if (p && *p)
		pr_info("faulty: not zero\n");
	kfree((void *)p);
}

static const struct {
	const char *name;
	void (*run)(void);
} faults[] = {
	{ "oops", do_oops },
	{ "warn", do_warn },
	{ "kasan", do_kasan },
	{ "ubsan", do_ubsan },
	{ "lockdep", do_lockdep },
	{ "rcu", do_rcu },
	{ "atomic-sleep", do_atomic_sleep },
	{ "leak", do_leak },
	{ "soft-lockup", do_soft_lockup },
	{ "hung-task", do_hung_task },
	{ "dead", do_dead },
	{ "race", do_race },
	{ "uninit", do_uninit },
};

static int __init faulty_init(void)
{
	size_t i;

	if (!strcmp(fault, "none"))
		return 0;

	for (i = 0; i < ARRAY_SIZE(faults); i++) {
		if (strcmp(faults[i].name, fault))
			continue;
		pr_info("faulty: %s\n", fault);
		faults[i].run();
		return 0;
	}
	return -EINVAL;
}

static void __exit faulty_exit(void)
{
}

module_init(faulty_init);
module_exit(faulty_exit);

MODULE_DESCRIPTION("Module that misbehaves on request, for testing the test rig");
MODULE_LICENSE("GPL");
