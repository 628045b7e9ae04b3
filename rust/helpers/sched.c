// SPDX-License-Identifier: GPL-2.0

#include <linux/irqflags.h>
#include <linux/preempt.h>
#include <linux/sched.h>

__rust_helper bool rust_helper_task_is_preemptible(void)
{
	if (IS_ENABLED(CONFIG_PREEMPT_COUNT))
		return in_task() && preemptible();
	return in_task() && !irqs_disabled();
}

__rust_helper int rust_helper_cond_resched(void)
{
	return cond_resched();
}
