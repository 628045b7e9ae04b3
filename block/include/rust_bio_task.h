/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Completion of bios in task context in Rust: storage for the bios of a CPU,
 * and the interface to C.
 */
#ifndef _LINUX_RUST_BIO_TASK_H
#define _LINUX_RUST_BIO_TASK_H

#include <linux/bio.h>
#include <linux/percpu-defs.h>
#include <linux/rust_writeback.h>
#include <linux/workqueue.h>

struct rust_bio_task {
	struct bio		*last;	/* for rust/kernel/bio.rs alone */
	struct work_struct	work;
};

/* block/rust_bio_task.c, for rust/kernel/bio.rs */
DECLARE_PER_CPU(struct rust_bio_task, rust_bio_tasks);
void rust_bio_task_begin(struct rust_bio_task *task);
unsigned int rust_bio_nr_dropbehind(struct bio *bio, unsigned int most,
				    size_t largest);

/* block/rust_bio_task.c, for rust_bio_end_elsewhere() */
bool rust_bio_has_locked_folio(struct bio *bio);

/* block/bio_task.rs */
void rust_bio_complete_in_task(struct bio *bio);
void rust_bio_end_in_interrupt(struct bio *bio);
void rust_bio_task_work(struct rust_bio_task *task);

/* block/rust_bio_micro.h, for the micro-benchmark */
void bio_micro_work(void);

/*
 * @bio asks for completion in a task. In an interrupt it ends here if a task
 * only has to drop its folios, and is queued otherwise. In a task it is queued
 * in atomic context, or if its submitter still has one of its folios locked
 * (the device completed it at once): that folio could not be dropped.
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

/* Complete @bio in a task if @folio, which it writes, is dropbehind. */
static inline void rust_bio_end_dropbehind(struct bio *bio, struct folio *folio)
{
	if (rust_writeback_active() && folio_test_dropbehind(folio))
		bio_set_flag(bio, BIO_COMPLETE_IN_TASK);
}

#endif /* _LINUX_RUST_BIO_TASK_H */
