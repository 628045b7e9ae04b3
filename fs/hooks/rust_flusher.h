/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The C part of the flusher for rust/kernel/flusher.rs. Only fs-writeback.c
 * includes this file: its functions are static there.
 */
#ifdef CONFIG_RUST_WRITEBACK

static struct bdi_writeback *inode_to_wb_and_lock_list(struct inode *inode);
static long __writeback_inodes_wb(struct bdi_writeback *wb,
				  struct wb_writeback_work *work);

struct bdi_writeback *rust_wb_lock_list_of(struct inode *inode)
{
	return inode_to_wb_and_lock_list(inode);
}

void rust_wb_move_inode(struct inode *inode, struct bdi_writeback *wb,
			struct list_head *list)
{
	inode_io_list_move_locked(inode, wb, list);
}

struct super_block *rust_wb_work_sb(struct wb_writeback_work *work)
{
	return work->sb;
}

/* Write inodes of b_io. Drops and retakes the list_lock while it writes. */
long rust_wb_write_queued(struct bdi_writeback *wb, long *nr_pages)
{
	struct wb_writeback_work work = {
		.nr_pages	= *nr_pages,
		.sync_mode	= WB_SYNC_NONE,
		.range_cyclic	= 1,
		.reason		= WB_REASON_DONTCACHE,
	};
	long progress;

	trace_writeback_start(wb, &work);
	progress = __writeback_inodes_wb(wb, &work);
	trace_writeback_written(wb, &work);
	*nr_pages = work.nr_pages;
	return progress;
}

/* @inode changes lists: returns true if it was moved to b_dontcache. */
static bool rust_list_dontcache(struct inode *inode, struct bdi_writeback *wb)
{
	if (!rust_writeback_active() ||
	    !rust_dontcache_keeps(&inode->i_data, wb))
		return false;
	inode_state_clear(inode, I_SYNC_QUEUED);
	inode_io_list_move_locked(inode, wb, &wb->b_dontcache);
	return true;
}

#ifdef CONFIG_RUST_WRITEBACK_AB
static long wb_check_start_dontcache(struct bdi_writeback *wb);

long dontcache_test_flush(struct bdi_writeback *wb)
{
	return wb_check_start_dontcache(wb);
}
#endif

#else /* CONFIG_RUST_WRITEBACK */

static bool rust_list_dontcache(struct inode *inode, struct bdi_writeback *wb)
{
	return false;
}

#endif /* CONFIG_RUST_WRITEBACK */

/* Whether a test keeps dirty pages: then no writer kicks. */
static inline bool rust_holds_kicks(void)
{
#ifdef CONFIG_RUST_WRITEBACK_AB
	return static_branch_unlikely(&dontcache_hold_key);
#else
	return false;
#endif
}
