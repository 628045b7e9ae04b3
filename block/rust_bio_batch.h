/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Completion of bios in task context, in Rust: the batch of a CPU, and its
 * hooks as the C that they stand in sees them.
 */
#ifndef _LINUX_RUST_BIO_BATCH_H
#define _LINUX_RUST_BIO_BATCH_H

#include <linux/bio.h>
#include <linux/percpu-defs.h>
#include <linux/rust_writeback.h>
#include <linux/timer.h>
#include <linux/workqueue.h>

/*
 * Bios whose interrupts came to one CPU. The lists are those of
 * rust/kernel/writeback/batch.rs and only accessed by rust/kernel/bio.rs.
 */
struct rust_bio_batch {
	struct bio		*newest;	/* added */
	struct bio		*taken;		/* oldest first; also the lock */
	unsigned long		nr_popped;	/* wraps */
	unsigned long		nr_seen;	/* popped when the watch looked */
	struct work_struct	work;		/* on the batch's CPU */
	struct work_struct	rescue;		/* on another CPU */
	struct work_struct	last_resort;	/* where the scheduler likes */
	struct timer_list	watch;
};

#ifdef CONFIG_RUST_WRITEBACK

/* block/rust_bio_batch.c */
extern struct rust_bio_batch __percpu *const rust_bio_batches;
void rust_bio_batch_queue(struct rust_bio_batch *batch);
void rust_bio_batch_rescue(struct rust_bio_batch *batch);
void rust_bio_batch_watch(struct rust_bio_batch *batch);
bool rust_bio_has_locked_folio(struct bio *bio);

/* block/bio_batch.rs */
void rust_bio_complete_in_task(struct bio *bio);
bool rust_bio_batch_drain(struct rust_bio_batch *batch);
void rust_bio_batch_look(struct rust_bio_batch *batch);

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

static inline void rust_bio_end_dropbehind(struct bio *bio, struct folio *folio)
{
}

#endif /* CONFIG_RUST_WRITEBACK */

#endif /* _LINUX_RUST_BIO_BATCH_H */
