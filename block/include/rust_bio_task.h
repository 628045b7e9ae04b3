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
unsigned int rust_bio_nr_dropbehind(struct bio *bio, unsigned int most);

/* block/bio_task.rs */
void rust_bio_complete_in_task(struct bio *bio);
bool rust_bio_can_end_here(struct bio *bio);
void rust_bio_task_work(struct rust_bio_task *task);

/* block/rust_bio_micro.h, for the micro-benchmark */
void bio_micro_work(void);

/*
 * @bio asks for completion in a task. It may end in an atomic context if a task
 * only has to drop its folios: they wait for the task.
 */
static inline bool rust_bio_ends_here(struct bio *bio)
{
	return rust_writeback_active() && bio_in_atomic() &&
	       rust_bio_can_end_here(bio);
}

/* Complete @bio in a task if @folio, which it writes, is dropbehind. */
static inline void rust_bio_end_dropbehind(struct bio *bio, struct folio *folio)
{
	if (rust_writeback_active() && folio_test_dropbehind(folio))
		bio_set_flag(bio, BIO_COMPLETE_IN_TASK);
}

#endif /* _LINUX_RUST_BIO_TASK_H */
