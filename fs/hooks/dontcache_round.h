/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The flusher's part of DONTCACHE writes. Only fs-writeback.c includes this
 * file: the functions that Rust needs are static there.
 */
#ifdef CONFIG_RUST_WRITEBACK

static bool inode_io_list_move_locked(struct inode *inode,
				      struct bdi_writeback *wb,
				      struct list_head *head);
static struct bdi_writeback *inode_to_wb_and_lock_list(struct inode *inode);
static long __writeback_inodes_wb(struct bdi_writeback *wb,
				  struct wb_writeback_work *work);

struct list_head *wb_dontcache_list(struct bdi_writeback *wb)
{
	return &wb->b_dontcache;
}

struct bdi_writeback *wb_lock_list_of(struct inode *inode)
{
	return inode_to_wb_and_lock_list(inode);
}

void wb_move_inode(struct inode *inode, struct bdi_writeback *wb,
		   struct list_head *list)
{
	inode_io_list_move_locked(inode, wb, list);
}

/*
 * Run the flusher in @ms or earlier. The lock orders the test before the
 * queueing: wb_shutdown() clears the bit under it, and drains the work later.
 */
void wb_run_within(struct bdi_writeback *wb, unsigned int ms)
{
	unsigned long delay = msecs_to_jiffies(ms);
	struct delayed_work *dwork = &wb->dwork;

	guard(spinlock_irqsave)(&wb->work_lock);
	if (test_bit(WB_registered, &wb->state) &&
	    !queue_delayed_work(bdi_wq, dwork, delay) &&
	    timer_pending(&dwork->timer) &&
	    time_after(dwork->timer.expires, jiffies + delay))
		mod_delayed_work(bdi_wq, dwork, delay);
}

/*
 * Write inodes of b_io, at most @portion pages of each at a time. Drops and
 * retakes the list_lock while it writes.
 */
long wb_write_queued(struct bdi_writeback *wb, long *nr_pages, long portion)
{
	struct wb_writeback_work work = {
		.nr_pages	= *nr_pages,
		.sync_mode	= WB_SYNC_NONE,
		.range_cyclic	= 1,
		.reason		= WB_REASON_DONTCACHE,
	};
	struct blk_plug plug;
	long progress;

	wb->dontcache_portion = portion;
	trace_writeback_start(wb, &work);
	blk_start_plug(&plug);
	progress = __writeback_inodes_wb(wb, &work);
	spin_unlock(&wb->list_lock);
	blk_finish_plug(&plug);
	spin_lock(&wb->list_lock);
	trace_writeback_written(wb, &work);
	wb->dontcache_portion = 0;
	*nr_pages = work.nr_pages;
	return progress;
}

#endif /* CONFIG_RUST_WRITEBACK */

/*
 * The list of @wb that @inode, which moves to @list, belongs in: b_dontcache or
 * @list.
 */
static struct list_head *dontcache_list(struct inode *inode,
					struct bdi_writeback *wb,
					struct list_head *list)
{
	if (!rust_writeback_active() ||
	    (list != &wb->b_dirty && list != &wb->b_more_io) ||
	    !dontcache_keeps(inode, wb))
		return list;
	inode_state_clear(inode, I_SYNC_QUEUED);
	return wb_dontcache_list(wb);
}

/* A round writes @chunk pages of an inode at a time, or fewer. */
static long dontcache_limit_chunk(struct bdi_writeback *wb,
				  struct wb_writeback_work *work, long chunk)
{
#ifdef CONFIG_RUST_WRITEBACK
	if (work->reason == WB_REASON_DONTCACHE && rust_writeback_active())
		return min(chunk, wb->dontcache_portion);
#endif
	return chunk;
}

/* Serve a kick between two portions of @work, or before the next if NULL. */
static inline void dontcache_serve_kick(struct bdi_writeback *wb,
					struct wb_writeback_work *work,
					unsigned long dirtied_before)
{
	if (rust_writeback_active())
		dontcache_flush_beside(wb, !work, work ? work->sb : NULL,
				       dirtied_before);
}

/* The flusher of @wb is about to sleep: run it again if pages are left. */
static inline void dontcache_run_again(struct bdi_writeback *wb)
{
#ifdef CONFIG_RUST_WRITEBACK_AB
	if (dontcache_holds_kicks())
		return;
#endif
	if (rust_writeback_active())
		dontcache_before_sleep(wb);
}
