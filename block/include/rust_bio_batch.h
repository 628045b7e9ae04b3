/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Completion of bios in task context, in Rust: the batch of a CPU, and its
 * hooks as the C that they stand in sees them.
 */
#ifndef _LINUX_RUST_BIO_BATCH_H
#define _LINUX_RUST_BIO_BATCH_H

#include <linux/bio.h>
#include <linux/irq_work.h>
#include <linux/percpu-defs.h>
#include <linux/rust_writeback.h>
#include <linux/smp.h>
#include <linux/timer.h>
#include <linux/workqueue.h>

enum {
	RUST_BIO_BATCH_CORE	= 8,	/* words */
	RUST_BIO_BATCH_HZ	= HZ,
};

/* Bios whose interrupts came to one CPU. */
struct rust_bio_batch {
	/*
	 * Batch of rust/kernel/writeback/batch.rs, which only this CPU uses,
	 * with interrupts off.
	 */
	unsigned long		core[RUST_BIO_BATCH_CORE];
	unsigned int		cpu;
	unsigned int		looked_at;	/* by find_cpu(), in vain */
	struct work_struct	work;
	struct irq_work		watch;
	struct timer_list	idle_watch;
	struct irq_work		depart;
	/* other CPUs access these */
	call_single_data_t	move;
	struct bio_list		moving;		/* to another CPU */
	unsigned int		is_moving;	/* not yet taken there */
	unsigned long		crowded_until;	/* by real-time tasks, in jiffies */
};

#ifdef CONFIG_RUST_WRITEBACK

/* block/rust_bio_batch.c, for rust/kernel/bio_batch.rs and bio.rs */
DECLARE_PER_CPU_ALIGNED(struct rust_bio_batch, rust_bio_batches);
extern struct workqueue_struct *rust_bio_batch_wq;
void rust_bio_batch_watch(struct rust_bio_batch *batch);
int rust_bio_batch_find_cpu(struct rust_bio_batch *batch);
void rust_bio_batch_depart_soon(struct rust_bio_batch *batch);
bool rust_bio_batch_send(struct rust_bio_batch *batch, int cpu);
unsigned int rust_bio_nr_dropbehind(struct bio *bio, unsigned int most,
				    size_t largest);

/* block/rust_bio_batch.c, for rust_bio_end_elsewhere() */
bool rust_bio_has_locked_folio(struct bio *bio);

/* block/bio_batch.rs */
void rust_bio_complete_in_task(struct bio *bio);
void rust_bio_end_in_interrupt(struct bio *bio);
bool rust_bio_batch_work(void);
void rust_bio_batch_look(void);
void rust_bio_batch_depart(void);
void rust_bio_batch_arrived(struct rust_bio_batch *from);
void rust_bio_batch_retire(unsigned int cpu);

/* block/rust_bio_micro.h, for the micro-benchmark */
void bio_micro_work(void);

/*
 * @bio wants a task. In an interrupt it ends nevertheless if that leaves no more
 * to a task than to drop its folios, and later otherwise. Nor does it end here
 * where its submitter still has one of its folios locked, on a device that
 * completes what it is given at once: the folio could not be dropped.
 */
static inline bool rust_bio_end_elsewhere(struct bio *bio)
{
	if (!rust_writeback_active())
		return false;
	if (!in_task()) {
		rust_bio_end_in_interrupt(bio);
		return true;
	}
	if (!bio_in_atomic() && !rust_bio_has_locked_folio(bio))
		return false;
	rust_bio_complete_in_task(bio);
	return true;
}

/* Have @bio completed in task context if @folio, which it writes, needs that. */
static inline void rust_bio_end_dropbehind(struct bio *bio, struct folio *folio)
{
	if (rust_writeback_active() && folio_test_dropbehind(folio))
		bio_set_flag(bio, BIO_COMPLETE_IN_TASK);
}

#else /* CONFIG_RUST_WRITEBACK */

static inline void rust_bio_complete_in_task(struct bio *bio)
{
}

static inline bool rust_bio_end_elsewhere(struct bio *bio)
{
	return false;
}

static inline void rust_bio_end_dropbehind(struct bio *bio, struct folio *folio)
{
}

#endif /* CONFIG_RUST_WRITEBACK */

#endif /* _LINUX_RUST_BIO_BATCH_H */
