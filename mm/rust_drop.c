// SPDX-License-Identifier: GPL-2.0
/*
 * Folios that are to be dropped, together and later: their storage, and what
 * runs for them.
 */
#include <linux/export.h>
#include <linux/init.h>
#include <linux/jiffies.h>
#include <linux/rust_drop_batch.h>
#include <linux/rust_leftovers.h>

DEFINE_PER_CPU(struct rust_drop_batch, rust_drop_batches);
EXPORT_SYMBOL_GPL(rust_drop_batch_begin);
EXPORT_SYMBOL_GPL(rust_drop_batch_end);

DEFINE_PER_CPU(struct rust_leftovers, rust_leftovers);

bool rust_leftovers_queue(struct rust_leftovers *leftovers, unsigned int ms,
			  bool anew)
{
	unsigned long wait = msecs_to_jiffies(ms);

	if (anew)
		return !mod_delayed_work(system_percpu_wq, &leftovers->work,
					 wait);
	return queue_delayed_work(system_percpu_wq, &leftovers->work, wait);
}

static void leftovers_work(struct work_struct *work)
{
	rust_leftovers_try(container_of(to_delayed_work(work),
					struct rust_leftovers, work));
}

static int __init rust_leftovers_init(void)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu)
		INIT_DELAYED_WORK(&per_cpu(rust_leftovers, cpu).work,
				  leftovers_work);
	return 0;
}
core_initcall(rust_leftovers_init);
