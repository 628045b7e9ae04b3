// SPDX-License-Identifier: GPL-2.0
/*
 * Storage and worker for bios that complete in task context.
 */
#include <linux/init.h>
#include <linux/rust_bio_task.h>

DEFINE_PER_CPU(struct rust_bio_task, rust_bio_tasks);

/*
 * Reclaim may wait for these completions: the workqueue needs a rescuer.
 * Unbound: a real-time task that has the CPU cannot delay the worker.
 */
static struct workqueue_struct *rust_bio_task_wq __ro_after_init;

void rust_bio_task_begin(struct rust_bio_task *task)
{
	queue_work(rust_bio_task_wq, &task->work);
}

static void bio_task_work(struct work_struct *work)
{
	rust_bio_task_work(container_of(work, struct rust_bio_task, work));
}

unsigned int rust_bio_nr_dropbehind(struct bio *bio, unsigned int most)
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

static int __init rust_bio_task_init(void)
{
	unsigned int cpu;

	rust_bio_task_wq = alloc_workqueue("rust_bio_task", WQ_MEM_RECLAIM |
					   WQ_HIGHPRI | WQ_UNBOUND, 0);
	if (!rust_bio_task_wq)
		panic("bio: no workqueue to complete bios in task context\n");
	for_each_possible_cpu(cpu)
		INIT_WORK(&per_cpu(rust_bio_tasks, cpu).work, bio_task_work);
	return 0;
}
subsys_initcall(rust_bio_task_init);
