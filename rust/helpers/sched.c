// SPDX-License-Identifier: GPL-2.0

#include <linux/irqflags.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>

__rust_helper bool rust_helper_task_is_preemptible(void)
{
	/* A task that holds a spinlock of PREEMPT_RT is in a section of RCU. */
	if (IS_ENABLED(CONFIG_PREEMPT_RT) && rcu_preempt_depth())
		return false;
	if (IS_ENABLED(CONFIG_PREEMPT_COUNT))
		return in_task() && preemptible();
	return in_task() && !irqs_disabled();
}

__rust_helper int rust_helper_cond_resched(void)
{
	return cond_resched();
}
