// SPDX-License-Identifier: GPL-2.0
/*
 * The batches of bios that are completed in task context: their storage, what
 * runs for them, and CPUs that come and go.
 */
#include <linux/cpuhotplug.h>
#include <linux/init.h>
#include <linux/jiffies.h>
#include <linux/rust_bio_batch.h>
#include <linux/sched.h>
#include <linux/sched/isolation.h>
#include <linux/tick.h>

/* How many CPUs are looked at to find one for a batch: interrupts are off. */
#define LOOK_AT		16

/* For how long a CPU is avoided that had a real-time task: jiffies. */
#define CROWDED_FOR	(HZ / 10 + 1)

DEFINE_PER_CPU_ALIGNED(struct rust_bio_batch, rust_bio_batches);

/* Reclaim may wait for these completions: it has a rescuer. */
struct workqueue_struct *rust_bio_batch_wq;

/*
 * The next tick looks, which is cheap, or a timer where the tick has stopped:
 * there lazy work would not wait.
 */
void rust_bio_batch_watch(struct rust_bio_batch *batch)
{
	if (irq_work_is_pending(&batch->watch))
		return;
	if (!tick_nohz_tick_stopped())
		irq_work_queue(&batch->watch);
	else if (!timer_pending(&batch->idle_watch))
		mod_timer(&batch->idle_watch, jiffies + 1);
}

static bool is_crowded(unsigned int cpu)
{
	return time_before(jiffies,
			   READ_ONCE(per_cpu(rust_bio_batches, cpu).crowded_until));
}

/*
 * A CPU that is idle if there is one near, or else one that has sent nothing
 * lately: what the others run nobody can tell without their runqueue's lock.
 * One that runs a real-time task sends on what it gets. Where there is none the
 * next search begins behind those that were looked at.
 */
int rust_bio_batch_find_cpu(struct rust_bio_batch *batch)
{
	const struct cpumask *allowed = housekeeping_cpumask(HK_TYPE_DOMAIN);
	unsigned int here = smp_processor_id(), first = nr_cpu_ids;
	unsigned int cpu = batch->looked_at;
	int found = -1;

	WRITE_ONCE(batch->crowded_until, jiffies + CROWDED_FOR);
	for (unsigned int looks = 0; looks < LOOK_AT; looks++) {
		cpu = cpumask_next_and_wrap(cpu, cpu_active_mask, allowed);
		if (cpu >= nr_cpu_ids || cpu == first)
			break;
		if (first == nr_cpu_ids)
			first = cpu;
		if (cpu == here)
			continue;
		if (idle_cpu(cpu)) {
			found = cpu;
			break;
		}
		if (found < 0 && !is_crowded(cpu))
			found = cpu;
	}
	batch->looked_at = found < 0 && cpu < nr_cpu_ids ? cpu : here;
	return found;
}

void rust_bio_batch_depart_soon(struct rust_bio_batch *batch)
{
	irq_work_queue(&batch->depart);
}

bool rust_bio_batch_send(struct rust_bio_batch *batch, int cpu)
{
	return !smp_call_function_single_async(cpu, &batch->move);
}

/*
 * While a CPU comes or goes its work runs on another one, and ends what waits
 * there.
 */
static void batch_work(struct work_struct *work)
{
	struct rust_bio_batch *batch =
		container_of(work, struct rust_bio_batch, work);

	if (rust_bio_batch_work())
		queue_work_on(batch->cpu, rust_bio_batch_wq, work);
}

static void batch_look(struct irq_work *work)
{
	rust_bio_batch_look();
}

static void batch_idle_look(struct timer_list *timer)
{
	rust_bio_batch_look();
}

static void batch_depart(struct irq_work *work)
{
	rust_bio_batch_depart();
}

static void batch_arrived(void *from)
{
	rust_bio_batch_arrived(from);
}

/* The work is bound to its CPU again, as it is when the CPU does not go. */
static int batch_cpu_online(unsigned int cpu)
{
	queue_work_on(cpu, rust_bio_batch_wq,
		      &per_cpu(rust_bio_batches, cpu).work);
	return 0;
}

static int batch_cpu_dead(unsigned int cpu)
{
	struct rust_bio_batch *batch = per_cpu_ptr(&rust_bio_batches, cpu);

	timer_delete_sync(&batch->idle_watch);
	rust_bio_batch_retire(cpu);
	return 0;
}

bool rust_bio_has_locked_folio(struct bio *bio)
{
	struct folio_iter fi;

	bio_for_each_folio_all(fi, bio)
		if (folio_test_locked(fi.folio))
			return true;
	return false;
}

unsigned int rust_bio_nr_dropbehind(struct bio *bio, unsigned int most,
				    size_t largest)
{
	unsigned int nr = 0, nr_dropbehind = 0;
	struct folio_iter fi;

	bio_for_each_folio_all(fi, bio) {
		if (++nr > most || folio_size(fi.folio) > largest)
			return 0;
		nr_dropbehind += folio_test_dropbehind(fi.folio);
	}
	return nr_dropbehind;
}

static int __init rust_bio_batch_init(void)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		struct rust_bio_batch *batch =
			per_cpu_ptr(&rust_bio_batches, cpu);

		batch->cpu = cpu;
		batch->looked_at = cpu;
		batch->crowded_until = jiffies;
		INIT_WORK(&batch->work, batch_work);
		INIT_CSD(&batch->move, batch_arrived, batch);
		batch->depart = IRQ_WORK_INIT_HARD(batch_depart);
		batch->watch = IRQ_WORK_INIT_LAZY(batch_look);
		timer_setup(&batch->idle_watch, batch_idle_look, TIMER_PINNED);
	}
	rust_bio_batch_wq = alloc_workqueue("rust_bio_batch", WQ_MEM_RECLAIM |
					    WQ_HIGHPRI | WQ_PERCPU, 0);
	if (!rust_bio_batch_wq)
		panic("bio: no workqueue to complete bios in task context\n");
	WARN_ON(cpuhp_setup_state_nocalls(CPUHP_BP_PREPARE_DYN,
					  "block/rust_bio_batch:dead", NULL,
					  batch_cpu_dead) < 0);
	WARN_ON(cpuhp_setup_state_nocalls(CPUHP_AP_ONLINE_DYN,
					  "block/rust_bio_batch:online",
					  batch_cpu_online, NULL) < 0);
	return 0;
}
subsys_initcall(rust_bio_batch_init);
