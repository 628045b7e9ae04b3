/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The flusher's side of the kick, included by fs-writeback.c alone: struct
 * wb_writeback_work and the lists of inodes are private to it.
 */
#ifdef CONFIG_RUST_WRITEBACK

#include <linux/rust_dropbehind.h>

EXPORT_SYMBOL_GPL(rust_dontcache_kick);
EXPORT_SYMBOL_GPL(rust_dontcache_policy);

/* Folios of a file that are looked at before it is believed to have some. */
#define RUST_DONTCACHE_LOOKS	64

/* Inodes that are looked at for a kick. What it leaves is sought among all. */
#define RUST_DONTCACHE_INODES	1024L

/* How long what a kick has left may wait, and if none of it could be written. */
#define RUST_DONTCACHE_AGAIN	(HZ / 10)
#define RUST_DONTCACHE_STUCK	HZ

/*
 * Whether @mapping has dirty dropbehind folios. Who dirties one marks @mapping
 * and tags the folio while it holds the lock that is taken here. The flags are
 * asked, not whether it is counted: somebody may be about to count it again.
 */
static bool rust_mapping_has_dontcache(struct address_space *mapping)
{
	XA_STATE(xas, &mapping->i_pages, 0);
	struct folio *folio;
	int looks = 0;

	if (!test_bit(AS_DONTCACHE_DIRTY, &mapping->flags))
		return false;
	guard(spinlock_irq)(&mapping->i_pages.xa_lock);
	xas_for_each_marked(&xas, folio, ULONG_MAX, PAGECACHE_TAG_DIRTY) {
		if (folio_is_dontcache_dirty(folio) ||
		    ++looks == RUST_DONTCACHE_LOOKS)
			return true;
	}
	clear_bit(AS_DONTCACHE_DIRTY, &mapping->flags);
	return false;
}

static void rust_queue_dontcache(struct bdi_writeback *wb,
				 struct list_head *list, long inodes)
{
	struct inode *inode, *next;

	list_for_each_entry_safe(inode, next, list, i_io_list) {
		if (!inodes--)
			break;
		if (!rust_mapping_has_dontcache(&inode->i_data))
			continue;
		spin_lock(&inode->i_lock);
		list_move_tail(&inode->i_io_list, &wb->b_io);
		inode_state_set(inode, I_SYNC_QUEUED);
		spin_unlock(&inode->i_lock);
	}
}

/*
 * Queues the inodes that have dirty dropbehind pages, and no other: these keep
 * their place and their time. What is queued already waits where queue_io()
 * takes it from.
 */
static long rust_write_dontcache_inodes(struct bdi_writeback *wb,
					struct wb_writeback_work *work,
					long inodes)
{
	long progress;

	guard(spinlock)(&wb->list_lock);
	trace_writeback_start(wb, work);
	list_splice_tail_init(&wb->b_io, &wb->b_more_io);
	rust_queue_dontcache(wb, &wb->b_more_io, inodes);
	rust_queue_dontcache(wb, &wb->b_dirty, inodes);
	progress = __writeback_inodes_wb(wb, work);
	trace_writeback_written(wb, work);
	return progress;
}

static noinline long rust_wb_write_dontcache(struct bdi_writeback *wb,
					     long nr_pages, long inodes)
{
	struct wb_writeback_work work = {
		.nr_pages	= nr_pages,
		.sync_mode	= WB_SYNC_NONE,
		.range_cyclic	= 1,
		.reason		= WB_REASON_DONTCACHE,
	};
	struct blk_plug plug;

	blk_start_plug(&plug);
	while (rust_write_dontcache_inodes(wb, &work, inodes) &&
	       work.nr_pages > 0)
		;
	blk_finish_plug(&plug);
	/* Behind what was parked: other work comes to that first. */
	scoped_guard(spinlock, &wb->list_lock)
		list_splice_init(&wb->b_io, &wb->b_more_io);
	return nr_pages - work.nr_pages;
}

static long rust_wb_check_start_dontcache(struct bdi_writeback *wb)
{
	bool left = test_bit(WB_dontcache_left, &wb->state);
	s64 nr_pages = rust_dontcache_consume(wb);
	long written;

	if (nr_pages <= 0)
		return 0;
	written = rust_wb_write_dontcache(wb, nr_pages,
					  left ? LONG_MAX : RUST_DONTCACHE_INODES);
	assign_bit(WB_dontcache_stuck, &wb->state, !written);
	return written;
}

/*
 * Between two portions of other work, so that long work delays no kick. Work
 * for one super block is for sync(): it goes by the time at which inodes were
 * dirtied, which a round in the middle would change, and has an end.
 */
static void rust_wb_serve_kick(struct bdi_writeback *wb,
			       struct wb_writeback_work *work)
{
	if (rust_writeback_active() && !work->sb &&
	    test_bit(WB_start_dontcache, &wb->state))
		rust_wb_check_start_dontcache(wb);
}

/*
 * Nothing is dirty, so nothing is to be counted, and there is nothing for a
 * kick whose pages others have written.
 */
static void rust_wb_heal(struct bdi_writeback *wb)
{
	s64 pages;

	rust_dontcache_consume(wb);
	clear_bit(WB_dontcache_stuck, &wb->state);
	pages = rust_dontcache_heal(wb);
	if (pages)
		pr_warn("%s: %lld pages were counted as dirty dropbehind, but none is\n",
			bdi_dev_name(wb->bdi), pages);
}

/*
 * The flusher is about to rest. A kick that it has not seen, because it is the
 * rescuer, is served at once; pages that it could not write for a kick, or that
 * have come with an inode from another wb, are tried again soon; at leisure if
 * they cannot be written, as after a shutdown of their file system. No periodic
 * writeback is needed for any of it.
 */
static void rust_wb_look_again(struct bdi_writeback *wb)
{
	if (!rust_writeback_active())
		return;
	if (!wb_has_dirty_io(wb)) {
		rust_wb_heal(wb);
	} else if (test_bit(WB_start_dontcache, &wb->state)) {
		wb_wakeup(wb);
	} else if (!static_branch_unlikely(&rust_writeback_policy_key) &&
		 rust_dontcache_leave(wb)) {
		long delay = test_bit(WB_dontcache_stuck, &wb->state) ?
			     RUST_DONTCACHE_STUCK : RUST_DONTCACHE_AGAIN;

		guard(spinlock_irq)(&wb->work_lock);
		if (test_bit(WB_registered, &wb->state))
			queue_delayed_work(bdi_wq, &wb->dwork, delay);
	}
}

#if defined(CONFIG_RUST_WRITEBACK_KUNIT_TEST) || defined(CONFIG_RUST_WRITEBACK_MICRO)
static long wb_check_start_dontcache(struct bdi_writeback *wb);

long dontcache_test_flush(struct bdi_writeback *wb)
{
	return wb_check_start_dontcache(wb);
}
#endif

#else /* CONFIG_RUST_WRITEBACK */

static long rust_wb_check_start_dontcache(struct bdi_writeback *wb)
{
	return 0;
}

static void rust_wb_serve_kick(struct bdi_writeback *wb,
			       struct wb_writeback_work *work)
{
}

static void rust_wb_look_again(struct bdi_writeback *wb)
{
}

#endif /* CONFIG_RUST_WRITEBACK */
