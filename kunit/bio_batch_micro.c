// SPDX-License-Identifier: GPL-2.0
/*
 * What the active writeback core takes to queue a bio that wants a task, and to
 * end it there, in TSC ticks. Where the TSC counts instructions, the figures
 * repeat to the digit.
 *
 * Reading debugfs rust_writeback/micro_bios measures, and gives a line an
 * operation.
 */
#include <linux/bio.h>
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/kernel_stat.h>
#include <linux/pagemap.h>
#include <linux/rust_bio_batch.h>
#include <linux/sched.h>
#include <linux/seq_file.h>
#include <linux/sort.h>
#include <linux/timex.h>

#define NR_BIOS		33
#define ROUNDS		100
#define STREAM		1000

/* Long enough for all timers of a batch to be through. */
#define A_WHILE		5

struct subjects {
	struct bio		*bios[NR_BIOS];
	unsigned int		nr_ended;
};

struct costs {
	u64			queue;
	u64			end;
};

static void end_bio(struct bio *bio)
{
	unsigned int *nr_ended = bio->bi_private;

	++*nr_ended;
}

/* What @nr bios cost together, in one batch that nobody else sees. */
static struct costs take_costs(struct subjects *s, unsigned int nr)
{
	unsigned long flags;
	struct costs costs;
	u64 begin;

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
	return cmp_int(*(const u64 *)a, *(const u64 *)b);
}

/*
 * The median: an interrupt in the middle makes a round dear, and a worker pool
 * that is busy with something else makes it cheap to queue work there.
 */
static struct costs usual(struct subjects *s, unsigned int nr, bool in_a_while)
{
	static u64 queue[ROUNDS], end[ROUNDS];

	for (int round = 0; round < ROUNDS; round++) {
		struct costs costs;

		schedule_timeout_uninterruptible(A_WHILE);
		preempt_disable();
		if (!in_a_while)
			take_costs(s, 1);
		costs = take_costs(s, nr);
		preempt_enable();
		queue[round] = costs.queue;
		end[round] = costs.end;
	}
	sort(queue, ROUNDS, sizeof(*queue), compare, NULL);
	sort(end, ROUNDS, sizeof(*end), compare, NULL);
	return (struct costs){ queue[ROUNDS / 2], end[ROUNDS / 2] };
}

/*
 * How often tasks are switched for bios that complete one at a time, and fast.
 * While @folio is waited for, if there is one.
 */
static u64 switches(struct subjects *s, struct folio *folio)
{
	bool waits = folio && rust_begin_writeback_wait(folio);
	unsigned int ended_before = s->nr_ended;
	u64 before;

	migrate_disable();
	schedule_timeout_uninterruptible(A_WHILE);
	before = nr_context_switches();
	for (unsigned int i = 0; i < STREAM; i++) {
		unsigned long flags;

		while (READ_ONCE(s->nr_ended) - ended_before + NR_BIOS <= i)
			schedule_timeout_uninterruptible(1);
		local_irq_save(flags);
		bio_endio(s->bios[i % NR_BIOS]);
		local_irq_restore(flags);
		usleep_range(20, 21);
	}
	schedule_timeout_uninterruptible(A_WHILE);
	migrate_enable();
	rust_end_writeback_wait(waits);
	return nr_context_switches() - before;
}

static void measure(struct seq_file *m, struct subjects *s, struct folio *folio)
{
	struct costs nothing = usual(s, 0, false);
	struct costs in_a_while = usual(s, 1, true);
	struct costs one = usual(s, 1, false);
	struct costs many = usual(s, NR_BIOS, false);

	seq_printf(m, "bio_first_in_a_while %llu\n",
		   in_a_while.queue - nothing.queue);
	seq_printf(m, "bio_another %llu\n",
		   (many.queue - one.queue) / (NR_BIOS - 1));
	seq_printf(m, "bio_alone %llu\n", one.end - nothing.end);
	seq_printf(m, "bio_of_32 %llu\n",
		   (many.end - one.end) / (NR_BIOS - 1));
	seq_printf(m, "stream_switches %llu\n", switches(s, NULL));
	seq_printf(m, "waited_stream_switches %llu\n", switches(s, folio));
}

/* Two batches of one in each round, but for those in a while. */
static const unsigned int nr_measured =
	ROUNDS * (1 + 1 + 2 + 1 + NR_BIOS) + 2 * STREAM;

static int micro_bios_show(struct seq_file *m, void *unused)
{
	struct folio *folio = folio_alloc(GFP_KERNEL, 0);
	struct subjects s = {};
	int err = -ENOMEM;

	if (!folio)
		return err;
	folio_set_dropbehind(folio);
	for (unsigned int i = 0; i < NR_BIOS; i++) {
		struct bio *bio = bio_alloc(NULL, 0, REQ_OP_WRITE, GFP_KERNEL);

		if (!bio)
			goto put;
		bio->bi_end_io = end_bio;
		bio->bi_private = &s.nr_ended;
		bio_set_flag(bio, BIO_COMPLETE_IN_TASK);
		s.bios[i] = bio;
	}
	measure(m, &s, folio);
	err = s.nr_ended == nr_measured ? 0 : -EIO;
put:
	for (unsigned int i = 0; i < NR_BIOS && s.bios[i]; i++)
		bio_put(s.bios[i]);
	folio_clear_dropbehind(folio);
	folio_put(folio);
	return err;
}
DEFINE_SHOW_ATTRIBUTE(micro_bios);

static int __init bio_batch_micro_init(void)
{
	debugfs_create_file("micro_bios", 0400,
			    debugfs_lookup("rust_writeback", NULL), NULL,
			    &micro_bios_fops);
	return 0;
}
late_initcall(bio_batch_micro_init);
