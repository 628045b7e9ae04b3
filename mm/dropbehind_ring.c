// SPDX-License-Identifier: GPL-2.0
/*
 * Storage and work items for dropping folios.
 */
#include <linux/init.h>
#include <linux/jiffies.h>
#include <linux/rust_writeback.h>

DEFINE_PER_CPU_ALIGNED(struct dropbehind_ring, dropbehind_rings);

/* Reclaim cannot free these folios before the work runs: it needs a rescuer. */
static struct workqueue_struct *dropbehind_wq __ro_after_init;

void dropbehind_begin(struct dropbehind_ring *ring, unsigned int ms, bool anew)
{
	unsigned long wait = msecs_to_jiffies(ms);

	if (anew)
		mod_delayed_work(dropbehind_wq, &ring->work, wait);
	else
		queue_delayed_work(dropbehind_wq, &ring->work, wait);
}

static void dropbehind_work_fn(struct work_struct *work)
{
	dropbehind_work(container_of(to_delayed_work(work),
				     struct dropbehind_ring, work));
}

static int __init dropbehind_init(void)
{
	unsigned int cpu;

	/* Unbound: a real-time task that has the CPU cannot delay drops. */
	dropbehind_wq = alloc_workqueue("dropbehind",
					WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	if (!dropbehind_wq)
		panic("mm: no workqueue to drop folios in\n");
	for_each_possible_cpu(cpu)
		INIT_DELAYED_WORK(&per_cpu(dropbehind_rings, cpu).work,
				  dropbehind_work_fn);
	return 0;
}
core_initcall(dropbehind_init);
