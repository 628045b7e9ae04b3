/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Folios of one bio that leave the page cache together: a CPU's storage for
 * them, and the hook that file systems have where they end a bio's folios.
 */
#ifndef _LINUX_RUST_DROP_BATCH_H
#define _LINUX_RUST_DROP_BATCH_H

#include <linux/bio.h>
#include <linux/cleanup.h>
#include <linux/folio_batch.h>
#include <linux/mm.h>
#include <linux/preempt.h>
#include <linux/rust_writeback.h>

enum {
	RUST_DROP_BATCH_CORE	= 2,	/* words */
};

/* Where a task gathers, which may leave the CPU meanwhile. */
struct rust_drop_batch {
	struct task_struct	*owner;
	/* only for the owner: Row of rust/kernel/writeback/together.rs */
	unsigned long		core[RUST_DROP_BATCH_CORE];
	struct folio_batch	folios;		/* locked */
};

#ifdef CONFIG_RUST_WRITEBACK

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
 * The folios of @bio are about to be ended, one after the other and without
 * waiting for anything. A bio whose first folio is an ordinary one, as all are
 * of a buffered or direct write, has its folios dropped one by one.
 */
static inline struct rust_drop_batch *rust_begin_drop_batch(struct bio *bio)
{
	struct folio *first;

	/* a bio of a page has one folio */
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

#else /* CONFIG_RUST_WRITEBACK */

static inline struct rust_drop_batch *rust_begin_drop_batch(struct bio *bio)
{
	return NULL;
}

static inline void rust_end_drop_batch(struct rust_drop_batch *batch)
{
}

#endif /* CONFIG_RUST_WRITEBACK */

/* CLASS(rust_drop_batch, drops)(bio): for as long as the scope lasts */
DEFINE_CLASS(rust_drop_batch, struct rust_drop_batch *, rust_end_drop_batch(_T),
	     rust_begin_drop_batch(bio), struct bio *bio)

#endif /* _LINUX_RUST_DROP_BATCH_H */
