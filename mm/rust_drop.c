// SPDX-License-Identifier: GPL-2.0
/*
 * Storage and work items for dropping folios: in batches, soon and later.
 */
#include <linux/export.h>
#include <linux/init.h>
#include <linux/jiffies.h>
#include <linux/rust_drop.h>

DEFINE_PER_CPU(struct rust_drop_batch, rust_drop_batches);
EXPORT_SYMBOL_GPL(rust_drop_batch_begin);
EXPORT_SYMBOL_GPL(rust_drop_batch_end);

DEFINE_PER_CPU(struct rust_leftovers, rust_leftovers);

DEFINE_PER_CPU_ALIGNED(struct rust_drop_queue, rust_drop_queues);

/* Reclaim cannot free queued folios before this runs: it needs a rescuer. */
static struct workqueue_struct *rust_drop_wq __ro_after_init;

bool rust_drop_begin(struct delayed_work *work, unsigned int ms, bool anew)
{
	unsigned long wait = msecs_to_jiffies(ms);

	if (anew)
		return !mod_delayed_work(rust_drop_wq, work, wait);
	return queue_delayed_work(rust_drop_wq, work, wait);
}

static void leftovers_work(struct work_struct *work)
{
	rust_leftovers_try(container_of(to_delayed_work(work),
					struct rust_leftovers, work));
}

static void drop_queue_work(struct work_struct *work)
{
	rust_drop_queue_drop(container_of(to_delayed_work(work),
					  struct rust_drop_queue, work));
}

static int __init rust_drop_init(void)
{
	unsigned int cpu;

	/* Unbound: a real-time task that has the CPU cannot delay drops. */
	rust_drop_wq = alloc_workqueue("rust_drop",
				       WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	if (!rust_drop_wq)
		panic("mm: no workqueue to drop folios in\n");
	for_each_possible_cpu(cpu) {
		INIT_DELAYED_WORK(&per_cpu(rust_leftovers, cpu).work,
				  leftovers_work);
		INIT_DELAYED_WORK(&per_cpu(rust_drop_queues, cpu).work,
				  drop_queue_work);
	}
	return 0;
}
core_initcall(rust_drop_init);
