/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Dropping of dropbehind folios: those of a bio in batches, those of an
 * interrupt soon, those locked by another task later.
 */
#ifndef _LINUX_RUST_DROP_H
#define _LINUX_RUST_DROP_H

#include <linux/bio.h>
#include <linux/cleanup.h>
#include <linux/folio_batch.h>
#include <linux/mm.h>
#include <linux/percpu-defs.h>
#include <linux/preempt.h>
#include <linux/rust_writeback.h>
#include <linux/workqueue.h>

enum {
	RUST_DROP_BATCH_CORE	= 2,	/* words */
};

/* A task's batch. The task may move to another CPU meanwhile. */
struct rust_drop_batch {
	struct task_struct	*owner;
	/* for the owner only: Row of rust/kernel/writeback/together.rs */
	unsigned long		core[RUST_DROP_BATCH_CORE];
	struct folio_batch	folios;		/* locked */
};

/*
 * Folios whose writeback ended in an interrupt of a CPU wait here for a task to
 * drop them. A kfifo would not do: a work item that finds it empty could miss
 * the next folio. Here an interrupt and the work item both change the slot
 * atomically.
 *
 * Each slot stands for 4 KiB: larger folios take several.
 */
enum {
	RUST_DROP_QUEUE_NR	= 512,
};

struct rust_drop_queue {
	/* for rust/kernel/drop_queue.rs alone */
	struct folio		*places[RUST_DROP_QUEUE_NR];
	unsigned long		nr_put;

	/* as above; only the work item changes it */
	unsigned long		nr_taken ____cacheline_aligned_in_smp;
	struct delayed_work	work;
};

/* mm/rust_drop.c, for rust/kernel/drop_queue.rs */
DECLARE_PER_CPU_ALIGNED(struct rust_drop_queue, rust_drop_queues);

/* mm/dropbehind_later.rs */
void rust_drop_queue_drop(struct rust_drop_queue *queue);

/*
 * A CPU keeps folios here for a retry that were locked or in use. If there is
 * no free slot, the folio stays in the page cache until reclaim.
 */
enum {
	RUST_LEFTOVERS_NR	= 64,
};

struct rust_leftover {
	struct folio	*folio;
	unsigned long	since;		/* jiffies */
};

struct rust_leftovers {
	struct rust_leftover	places[RUST_LEFTOVERS_NR];
	unsigned int		tries;	/* since last folio was added */
	struct delayed_work	work;
};

/* mm/rust_drop.c, for rust/kernel/leftovers.rs and drop_queue.rs */
DECLARE_PER_CPU(struct rust_leftovers, rust_leftovers);
bool rust_drop_begin(struct delayed_work *work, unsigned int ms, bool anew);

/* mm/dropbehind_later.rs */
void rust_drop_later(struct folio *folio);
void rust_leftovers_try(struct rust_leftovers *leftovers);

/* mm/rust_drop.c and mm/rust_end_dropbehind.h, for rust/kernel/drop_batch.rs */
DECLARE_PER_CPU(struct rust_drop_batch, rust_drop_batches);
void rust_filemap_lock(struct address_space *mapping);
void rust_filemap_delete(struct address_space *mapping,
			 struct folio *const *folios, unsigned int nr);
void rust_filemap_unlock(struct address_space *mapping);

/* mm/dropbehind_together.rs; begin and end are exported for modules */
struct rust_drop_batch *rust_drop_batch_begin(struct folio *first,
					      unsigned int nr_pieces,
					      unsigned int bytes);
bool rust_drop_batch_add(struct rust_drop_batch *batch, struct folio *folio);
void rust_drop_batch_end(struct rust_drop_batch *batch);
void rust_drop_locked(struct folio *folio);

/*
 * The caller is about to end the folios of @bio, one by one and without
 * sleeping. If the first folio is not dropbehind, as in all buffered and direct
 * writes, no batch begins: folios are dropped one by one.
 */
static inline struct rust_drop_batch *rust_begin_drop_batch(struct bio *bio)
{
	struct folio *first;

	/* A bio of one page has one folio: no batch. */
	if (!rust_writeback_active() || !bio->bi_vcnt ||
	    (bio->bi_vcnt == 1 && bio->bi_io_vec->bv_len <= PAGE_SIZE))
		return NULL;
	first = page_folio(bio->bi_io_vec->bv_page);
	if (!folio_test_dropbehind(first) || !in_task())
		return NULL;
	return rust_drop_batch_begin(first, bio->bi_vcnt,
				     bio->bi_io_vec->bv_len);
}

static inline void rust_end_drop_batch(struct rust_drop_batch *batch)
{
	if (batch)
		rust_drop_batch_end(batch);
}

/* CLASS(rust_drop_batch, drops)(bio): a batch until the end of the scope */
DEFINE_CLASS(rust_drop_batch, struct rust_drop_batch *, rust_end_drop_batch(_T),
	     rust_begin_drop_batch(bio), struct bio *bio)

#endif /* _LINUX_RUST_DROP_H */
