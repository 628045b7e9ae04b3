/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Folios whose writeback has ended in an interrupt of a CPU: where they wait for
 * a task to drop them. Not a kfifo: a work that finds that empty would have to be
 * told of what comes next. Here both change the place in question.
 */
#ifndef _LINUX_RUST_DROP_QUEUE_H
#define _LINUX_RUST_DROP_QUEUE_H

#include <linux/percpu-defs.h>
#include <linux/workqueue.h>

struct folio;

/* Of 4 KiB: larger folios have more of them. */
enum {
	RUST_DROP_QUEUE_NR	= 512,
};

struct rust_drop_queue {
	/* for rust/kernel/drop_queue.rs alone */
	struct folio		*places[RUST_DROP_QUEUE_NR];
	unsigned long		nr_put;

	/* as above; for the work */
	unsigned long		nr_taken ____cacheline_aligned_in_smp;
	struct delayed_work	work;
};

/* mm/rust_drop.c, for rust/kernel/drop_queue.rs */
DECLARE_PER_CPU_ALIGNED(struct rust_drop_queue, rust_drop_queues);

/* mm/dropbehind_later.rs */
void rust_drop_queue_drop(struct rust_drop_queue *queue);

#endif /* _LINUX_RUST_DROP_QUEUE_H */
