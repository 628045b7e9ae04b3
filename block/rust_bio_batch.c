// SPDX-License-Identifier: GPL-2.0
/*
 * The batches of bios that are completed in task context: their storage, their
 * workers, and CPUs that come and go.
 */
#include <linux/cpuhotplug.h>
#include <linux/highmem.h>
#include <linux/init.h>
#include <linux/rust_bio_batch.h>
#include <linux/sched.h>
#include <linux/sched/rt.h>

static DEFINE_PER_CPU(struct rust_bio_batch, batches);
struct rust_bio_batch __percpu *const rust_bio_batches = &batches;

/* Reclaim may wait for these completions: both have a rescuer. */
static struct workqueue_struct *local_wq;
static struct workqueue_struct *rescue_wq;

void rust_bio_batch_queue(struct rust_bio_batch *batch)
{
	queue_work(local_wq, &batch->work);
}

/* May change at any time: a hint. */
static bool cpu_runs_real_time(unsigned int cpu)
{
	guard(rcu)();
	return rt_or_dl_task(cpu_curr_snapshot(cpu));
}

/*
 * On an idle CPU if there is one, or on one that runs no real-time task. The
 * scheduler would look near this CPU only, and may be long about it: that is
 * for when the rescue itself does not get on.
 */
void rust_bio_batch_rescue(struct rust_bio_batch *batch)
{
	unsigned int here = raw_smp_processor_id(), best = nr_cpu_ids, cpu;

	if (work_busy(&batch->rescue)) {
		queue_work(rescue_wq, &batch->last_resort);
		return;
	}
	for_each_cpu_wrap(cpu, cpu_online_mask, here + 1) {
		if (idle_cpu(cpu)) {
			best = cpu;
			break;
		}
		if (best == nr_cpu_ids && !cpu_runs_real_time(cpu))
			best = cpu;
	}
	if (best < nr_cpu_ids)
		queue_work_on(best, local_wq, &batch->rescue);
	else
		queue_work(rescue_wq, &batch->last_resort);
}

void rust_bio_batch_watch(struct rust_bio_batch *batch)
{
	if (!timer_pending(&batch->watch))
		mod_timer(&batch->watch, jiffies + 1);
}

/* A worker that stops with something left is to be run again. */
static void batch_work(struct work_struct *work)
{
	struct rust_bio_batch *batch =
		container_of(work, struct rust_bio_batch, work);

	if (rust_bio_batch_drain(batch))
		queue_work(local_wq, work);
}

static void batch_rescue(struct work_struct *work)
{
	struct rust_bio_batch *batch =
		container_of(work, struct rust_bio_batch, rescue);

	if (rust_bio_batch_drain(batch))
		queue_work(local_wq, work);
}

static void batch_last_resort(struct work_struct *work)
{
	struct rust_bio_batch *batch =
		container_of(work, struct rust_bio_batch, last_resort);

	if (rust_bio_batch_drain(batch))
		queue_work(rescue_wq, work);
}

static void batch_watch(struct timer_list *timer)
{
	rust_bio_batch_look(container_of(timer, struct rust_bio_batch, watch));
}

bool rust_bio_has_locked_folio(struct bio *bio)
{
	struct folio_iter fi;

	bio_for_each_folio_all(fi, bio)
		if (folio_test_locked(fi.folio))
			return true;
	return false;
}

/* The CPU adds nothing any more; what it has added is completed here. */
static int batch_cpu_dead(unsigned int cpu)
{
	while (rust_bio_batch_drain(per_cpu_ptr(&batches, cpu)))
		cond_resched();
	return 0;
}

static int __init rust_bio_batch_init(void)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		struct rust_bio_batch *batch = per_cpu_ptr(&batches, cpu);

		INIT_WORK(&batch->work, batch_work);
		INIT_WORK(&batch->rescue, batch_rescue);
		INIT_WORK(&batch->last_resort, batch_last_resort);
		timer_setup(&batch->watch, batch_watch, TIMER_PINNED);
	}
	local_wq = alloc_workqueue("rust_bio_batch", WQ_MEM_RECLAIM |
				   WQ_HIGHPRI | WQ_PERCPU, 0);
	rescue_wq = alloc_workqueue("rust_bio_rescue", WQ_MEM_RECLAIM |
				    WQ_HIGHPRI | WQ_UNBOUND, 0);
	if (!local_wq || !rescue_wq)
		panic("bio: no workqueue to complete bios in task context\n");
	WARN_ON(cpuhp_setup_state_nocalls(CPUHP_BP_PREPARE_DYN,
					  "block/rust_bio_batch:dead", NULL,
					  batch_cpu_dead) < 0);
	return 0;
}
subsys_initcall(rust_bio_batch_init);
