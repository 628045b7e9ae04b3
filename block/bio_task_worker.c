// SPDX-License-Identifier: GPL-2.0
/*
 * Storage and worker for bios that complete in task context.
 */
#include <linux/init.h>
#include <linux/rust_writeback.h>

DEFINE_PER_CPU(struct bio_task, bio_tasks);

/*
 * Reclaim may wait for these completions: the workqueue needs a rescuer.
 * Unbound: a real-time task that has the CPU cannot delay the worker.
 */
static struct workqueue_struct *bio_task_wq __ro_after_init;

void bio_task_begin(struct bio_task *task)
{
	queue_work(bio_task_wq, &task->work);
}

unsigned int bio_nr_dropbehind(struct bio *bio, unsigned int most)
{
	unsigned int nr = 0, nr_dropbehind = 0;
	struct folio_iter fi;

	bio_for_each_folio_all(fi, bio) {
		if (++nr > most || folio_test_large(fi.folio))
			return 0;
		nr_dropbehind += folio_test_dropbehind(fi.folio);
	}
	return nr_dropbehind;
}

static int __init bio_task_init(void)
{
	unsigned int cpu;

	bio_task_wq = alloc_workqueue("bio_task", WQ_MEM_RECLAIM | WQ_HIGHPRI |
				      WQ_UNBOUND, 0);
	if (!bio_task_wq)
		panic("bio: no workqueue to complete bios in task context\n");
	for_each_possible_cpu(cpu)
		INIT_WORK(&per_cpu(bio_tasks, cpu).work, bio_task_run);
	return 0;
}
subsys_initcall(bio_task_init);
