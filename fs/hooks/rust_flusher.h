/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The flusher's side of the kick, included by fs-writeback.c alone: what is
 * private to that file, for the edges and rust/kernel/flusher.rs, which
 * decide.
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

/* Of b_io, under the list_lock, which is let go meanwhile. */
long rust_wb_write_queued(struct bdi_writeback *wb, long *nr_pages,
			  enum wb_reason reason)
{
	struct wb_writeback_work work = {
		.nr_pages	= *nr_pages,
		.sync_mode	= WB_SYNC_NONE,
		.range_cyclic	= 1,
		.reason		= reason,
	};
	long progress;

	trace_writeback_start(wb, &work);
	progress = __writeback_inodes_wb(wb, &work);
	trace_writeback_written(wb, &work);
	*nr_pages = work.nr_pages;
	return progress;
}

/* Whether @work is a round's: these reasons are together in enum wb_reason. */
static bool rust_is_round(struct wb_writeback_work *work)
{
	return rust_writeback_active() &&
	       work->reason >= WB_REASON_DONTCACHE &&
	       work->reason <= WB_REASON_DONTCACHE_SYNC;
}

/* How many pages of @inode are written at a time: at most @most. */
static long rust_chunk(struct wb_writeback_work *work, struct bdi_writeback *wb,
		       struct inode *inode, long most)
{
	if (!rust_is_round(work))
		return most;
	return rust_dontcache_chunk(wb, &inode->i_data, most);
}

/* What was kept of @inode, of @chunk pages, is as good as written for @work. */
static void rust_chunk_written(struct wb_writeback_work *work,
			       struct bdi_writeback *wb, struct inode *inode,
			       long chunk, long unwritten)
{
	if (rust_is_round(work))
		work->nr_pages -= rust_dontcache_kept(wb, &inode->i_data, chunk,
						      unwritten);
}

/* @inode is about to get into another list: whether it was kept in b_dontcache. */
static bool rust_list_dontcache(struct inode *inode, struct bdi_writeback *wb)
{
	if (!rust_writeback_active() ||
	    !rust_dontcache_keeps(&inode->i_data, wb))
		return false;
	inode_state_clear(inode, I_SYNC_QUEUED);
	inode_io_list_move_locked(inode, wb, &wb->b_dontcache);
	return true;
}

static struct list_head *rust_dirty_list(struct inode *inode,
					 struct bdi_writeback *wb,
					 struct list_head *list)
{
	if (!rust_writeback_active() || list != &wb->b_dirty ||
	    !rust_dontcache_keeps(&inode->i_data, wb))
		return list;
	return &wb->b_dontcache;
}

#ifdef CONFIG_RUST_WRITEBACK_AB
static long wb_check_start_dontcache(struct bdi_writeback *wb);

long dontcache_test_flush(struct bdi_writeback *wb)
{
	return wb_check_start_dontcache(wb);
}
#endif

#else /* CONFIG_RUST_WRITEBACK */

static long rust_chunk(struct wb_writeback_work *work, struct bdi_writeback *wb,
		       struct inode *inode, long most)
{
	return most;
}

static void rust_chunk_written(struct wb_writeback_work *work,
			       struct bdi_writeback *wb, struct inode *inode,
			       long chunk, long unwritten)
{
}

static bool rust_list_dontcache(struct inode *inode, struct bdi_writeback *wb)
{
	return false;
}

static struct list_head *rust_dirty_list(struct inode *inode,
					 struct bdi_writeback *wb,
					 struct list_head *list)
{
	return list;
}

#endif /* CONFIG_RUST_WRITEBACK */
