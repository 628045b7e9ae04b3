// SPDX-License-Identifier: GPL-2.0
/*
 * Cost of queueing a bio that asks for a task, and of ending it there, in TSC
 * ticks on the active core. Where the TSC counts instructions, results repeat
 * exactly.
 *
 * A read of debugfs rust_writeback/micro_bios measures, and returns a line per
 * operation.
 */
#include <linux/bio.h>
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/irq_work.h>
#include <linux/kernel_stat.h>
#include <linux/math64.h>
#include <linux/pagemap.h>
#include <linux/rust_writeback.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/timex.h>
#include <linux/workqueue.h>

#define NR_BIOS		33
#define ROUNDS		100
#define STREAM		1000

/* All timers of a batch expire within this time, in jiffies. */
#define A_WHILE		5

/* Shift of the start of each round within a tick. */
#define SHIFT_US	(USEC_PER_SEC / HZ / ROUNDS)

/* Longer than a worker waits for a CPU, even on a busy host. */
#define PATIENCE	(10 * HZ)

/*
 * How often each bio has completed and ended. A bio is completed again only
 * after it has ended: beside real-time tasks, some end on another CPU.
 */
struct subjects {
	struct bio		*bios[NR_BIOS];
	unsigned int		nr_begun[NR_BIOS];
	unsigned int		nr_ended[NR_BIOS];
};

/* Signed: on a busy host the difference may be negative. */
struct costs {
	s64			queue;
	s64			end;
};

static void end_bio(struct bio *bio)
{
	unsigned int *nr_ended = bio->bi_private;

	++*nr_ended;
}

static bool all_have_ended(const struct subjects *s)
{
	for (unsigned int i = 0; i < NR_BIOS; i++)
		if (READ_ONCE(s->nr_ended[i]) != s->nr_begun[i])
			return false;
	return true;
}

static bool wait_for_all(const struct subjects *s)
{
	for (int i = 0; i < PATIENCE && !all_have_ended(s); i++)
		schedule_timeout_uninterruptible(1);
	return all_have_ended(s);
}

/* Cost of @nr bios in one batch of their own. */
static struct costs take_costs(struct subjects *s, unsigned int nr)
{
	unsigned long flags;
	struct costs costs;
	u64 begin;

	for (unsigned int i = 0; i < nr; i++)
		s->nr_begun[i]++;
	local_irq_save(flags);
	begin = get_cycles();
	for (unsigned int i = 0; i < nr; i++)
		bio_endio(s->bios[i]);
	costs.queue = get_cycles() - begin;
	local_irq_restore(flags);

	begin = get_cycles();
	bio_micro_work();
	costs.end = get_cycles() - begin;
	return costs;
}

static int compare(const void *a, const void *b)
{
	return cmp_int(*(const s64 *)a, *(const s64 *)b);
}

/*
 * The mean of the middle half: an interrupt makes a round expensive, and
 * queueing is cheap while the worker pool is busy. Not the median, because the
 * cost of a wakeup varies within a tick.
 */
static s64 middle(s64 *costs)
{
	s64 sum = 0;

	sort(costs, ROUNDS, sizeof(*costs), compare, NULL);
	for (int round = ROUNDS / 4; round < ROUNDS * 3 / 4; round++)
		sum += costs[round];
	return div_s64(sum, ROUNDS / 2);
}

static void do_nothing(struct work_struct *work)
{
}

static DECLARE_WORK(idle_work, do_nothing);

/*
 * The cost of a wakeup depends on the worker's scheduling history: give the
 * workers of both cores the same history.
 */
static void have_worker_do_the_same(void)
{
	queue_work(system_highpri_wq, &idle_work);
	flush_work(&idle_work);
}

static struct costs usual(struct subjects *s, unsigned int nr, bool in_a_while)
{
	static s64 queue[ROUNDS], end[ROUNDS];

	for (int round = 0; round < ROUNDS;) {
		struct costs costs;
		bool alone;

		have_worker_do_the_same();
		schedule_timeout_uninterruptible(A_WHILE);
		if (!wait_for_all(s))
			break;
		udelay(round * SHIFT_US);
		preempt_disable();
		if (!in_a_while)
			take_costs(s, 1);
		alone = all_have_ended(s);
		if (alone)
			costs = take_costs(s, nr);
		preempt_enable();
		if (!alone)
			continue;
		queue[round] = costs.queue;
		end[round++] = costs.end;
	}
	return (struct costs){ middle(queue), middle(end) };
}

static void end_folio(struct bio *bio)
{
	folio_end_dropbehind(bio_first_folio_all(bio));
	end_bio(bio);
}

struct stream {
	struct irq_work	work;
	struct bio	*bio;
};

static void complete_bio(struct irq_work *work)
{
	bio_endio(container_of(work, struct stream, work)->bio);
}

/*
 * Task switches for bios of a dropbehind folio that complete in interrupts, one
 * at a time, and fast.
 */
static u64 switches(struct subjects *s, struct folio *folio)
{
	struct stream stream = { .work = IRQ_WORK_INIT_HARD(complete_bio) };
	u64 before;

	migrate_disable();
	schedule_timeout_uninterruptible(A_WHILE);
	before = nr_context_switches();
	for (unsigned int i = 0; i < STREAM; i++) {
		unsigned int n = i % NR_BIOS;

		if (READ_ONCE(s->nr_ended[n]) != s->nr_begun[n] &&
		    !wait_for_all(s))
			break;
		s->nr_begun[n]++;
		stream.bio = s->bios[n];
		folio_set_dropbehind(folio);
		irq_work_queue(&stream.work);
		irq_work_sync(&stream.work);
		usleep_range(20, 21);
	}
	schedule_timeout_uninterruptible(A_WHILE);
	wait_for_all(s);
	migrate_enable();
	return nr_context_switches() - before;
}

/* Adds @folio to each bio, whose end drops it. */
static void add_folio(struct subjects *s, struct folio *folio)
{
	for (unsigned int i = 0; i < NR_BIOS; i++) {
		s->bios[i]->bi_end_io = end_folio;
		bio_add_folio_nofail(s->bios[i], folio, folio_size(folio), 0);
	}
}

static void measure(struct seq_file *m, struct subjects *s, struct folio *folio)
{
	struct costs nothing = usual(s, 0, false);
	struct costs in_a_while = usual(s, 1, true);
	struct costs one = usual(s, 1, false);
	struct costs many = usual(s, NR_BIOS, false);

	seq_printf(m, "bio_first_in_a_while %lld\n",
		   in_a_while.queue - nothing.queue);
	seq_printf(m, "bio_another %lld\n",
		   (many.queue - one.queue) / (NR_BIOS - 1));
	seq_printf(m, "bio_alone %lld\n", one.end - nothing.end);
	seq_printf(m, "bio_of_32 %lld\n",
		   (many.end - one.end) / (NR_BIOS - 1));
	add_folio(s, folio);
	seq_printf(m, "stream_switches %llu\n", switches(s, folio));
}

static int micro_bios_show(struct seq_file *m, void *unused)
{
	struct folio *folio = folio_alloc(GFP_KERNEL, 0);
	struct subjects *s = kzalloc_obj(*s);
	int err = -ENOMEM;

	if (!folio || !s)
		goto free;
	for (unsigned int i = 0; i < NR_BIOS; i++) {
		struct bio *bio = bio_alloc(NULL, 1, REQ_OP_WRITE, GFP_KERNEL);

		if (!bio)
			goto put;
		bio->bi_end_io = end_bio;
		bio->bi_private = &s->nr_ended[i];
		bio_set_flag(bio, BIO_COMPLETE_IN_TASK);
		s->bios[i] = bio;
	}
	measure(m, s, folio);
	/* A bio that may still be in use is never freed. */
	if (!all_have_ended(s))
		return -EIO;
	err = 0;
put:
	for (unsigned int i = 0; i < NR_BIOS && s->bios[i]; i++)
		bio_put(s->bios[i]);
	folio_clear_dropbehind(folio);
free:
	if (folio)
		folio_put(folio);
	kfree(s);
	return err;
}
DEFINE_SHOW_ATTRIBUTE(micro_bios);

static int __init bio_task_micro_init(void)
{
	debugfs_create_file("micro_bios", 0400,
			    debugfs_lookup("rust_writeback", NULL), NULL,
			    &micro_bios_fops);
	return 0;
}
late_initcall(bio_task_micro_init);
