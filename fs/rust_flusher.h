/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The flusher's side of the kick, included by fs-writeback.c alone: struct
 * wb_writeback_work and the lists of inodes are private to it.
 */
#ifdef CONFIG_RUST_WRITEBACK

#include <linux/rust_dropbehind.h>

EXPORT_SYMBOL_GPL(rust_dontcache_kick);
EXPORT_SYMBOL_GPL(rust_dontcache_policy);

/* Dirty folios of a file that are looked at for a kick, and with a lock held. */
#define RUST_DONTCACHE_LOOKS	64

/* In all for what a kick has left, before that is believed of the others. */
#define RUST_DONTCACHE_LOOKS_LEFT	16384

/* Inodes that are looked at for a kick. What it leaves is sought among all. */
#define RUST_DONTCACHE_INODES	1024L

/* How long what a kick has left may wait, and if none of it could be written. */
#define RUST_DONTCACHE_AGAIN	(HZ / 10)
#define RUST_DONTCACHE_STUCK	HZ

/* For how long no other kick is served within work for sync(). */
#define RUST_DONTCACHE_IN_SYNC	HZ

/* Pages that are written for a kick where others wait: the rescuer, or works. */
#define RUST_DONTCACHE_PORTION	1024L

enum rust_dontcache {
	RUST_DONTCACHE_NONE,
	RUST_DONTCACHE_BELIEVED,
	RUST_DONTCACHE_FOUND,
};

/*
 * Whether @mapping has dirty dropbehind folios. Who dirties one marks @mapping
 * and tags the folio while it holds the lock that is taken here. The flags are
 * asked, not whether it is counted: somebody may be about to count it again.
 * The list_lock keeps the inode.
 */
static enum rust_dontcache rust_find_dontcache(struct address_space *mapping,
					       unsigned int *more)
{
	unsigned int looks = max(*more, RUST_DONTCACHE_LOOKS);
	enum rust_dontcache has = RUST_DONTCACHE_NONE;
	XA_STATE(xas, &mapping->i_pages, 0);
	struct folio *folio;

	if (!test_bit(AS_DONTCACHE_DIRTY, &mapping->flags))
		return has;
	xas_lock_irq(&xas);
	clear_bit(AS_DONTCACHE_DIRTY, &mapping->flags);
	xas_for_each_marked(&xas, folio, ULONG_MAX, PAGECACHE_TAG_DIRTY) {
		/* With DAX an entry is no folio. */
		if (!xa_is_value(folio) && folio_is_dontcache_dirty(folio)) {
			has = RUST_DONTCACHE_FOUND;
			break;
		}
		if (!--looks) {
			has = RUST_DONTCACHE_BELIEVED;
			break;
		}
		if (!(looks % RUST_DONTCACHE_LOOKS)) {
			xas_pause(&xas);
			xas_unlock_irq(&xas);
			xas_lock_irq(&xas);
		}
	}
	if (has != RUST_DONTCACHE_NONE)
		set_bit(AS_DONTCACHE_DIRTY, &mapping->flags);
	xas_unlock_irq(&xas);
	*more = min(*more, looks);
	return has;
}

static void rust_queue_dontcache(struct list_head *list, unsigned int *more,
				 long inodes, struct list_head *found,
				 struct list_head *believed)
{
	struct inode *inode, *next;

	list_for_each_entry_safe(inode, next, list, i_io_list) {
		enum rust_dontcache has;

		if (!inodes--)
			break;
		has = rust_find_dontcache(&inode->i_data, more);
		if (has == RUST_DONTCACHE_NONE)
			continue;
		spin_lock(&inode->i_lock);
		list_move(&inode->i_io_list,
			  has == RUST_DONTCACHE_FOUND ? found : believed);
		inode_state_set(inode, I_SYNC_QUEUED);
		spin_unlock(&inode->i_lock);
	}
}

/* Moves all inodes to the head of another list, the other way round. */
static void rust_turn_over(struct list_head *from, struct list_head *to)
{
	struct list_head *inode, *next;

	list_for_each_safe(inode, next, from)
		list_move(inode, to);
}

/*
 * Queues the inodes that have dirty dropbehind pages, and no other: these keep
 * their place and their time. What is queued already waits where queue_io()
 * takes it from.
 *
 * b_io is written from its tail. There lie the inodes that the last round, or
 * other work after it, has not reached, the next one last, then those that are
 * written in part, then fresh ones, the oldest last: no inode that is dirtied
 * all the time can keep another one waiting. Those that are only believed to
 * have such pages come after all others, unless pages were left: theirs may be
 * among them.
 */
static long rust_write_dontcache_inodes(struct bdi_writeback *wb,
					struct wb_writeback_work *work,
					bool left)
{
	unsigned int more = left ? RUST_DONTCACHE_LOOKS_LEFT : 0;
	long inodes = left ? LONG_MAX : RUST_DONTCACHE_INODES;
	struct list_head *parked_believed;
	LIST_HEAD(believed);
	LIST_HEAD(queued);
	LIST_HEAD(fresh);
	long progress;

	parked_believed = left ? &wb->b_io : &believed;
	guard(spinlock)(&wb->list_lock);
	trace_writeback_start(wb, work);
	list_splice_init(&wb->b_io, &queued);
	rust_queue_dontcache(&queued, &more, inodes, &wb->b_io, parked_believed);
	rust_queue_dontcache(&wb->b_more_io, &more, inodes, &wb->b_io,
			     parked_believed);
	rust_queue_dontcache(&wb->b_dirty, &more, inodes, &fresh, &believed);
	rust_turn_over(&fresh, &wb->b_io);
	list_splice(&believed, &wb->b_io);
	list_splice_tail(&queued, &wb->b_more_io);
	progress = __writeback_inodes_wb(wb, work);
	/* Other work begins at the tail, with what was parked before. */
	rust_turn_over(&wb->b_io, &wb->b_more_io);
	trace_writeback_written(wb, work);
	return progress;
}

static noinline long rust_wb_write_dontcache(struct bdi_writeback *wb,
					     long nr_pages, bool left)
{
	struct wb_writeback_work work = {
		.nr_pages	= nr_pages,
		.sync_mode	= WB_SYNC_NONE,
		.range_cyclic	= 1,
		.reason		= WB_REASON_DONTCACHE,
	};
	struct blk_plug plug;

	blk_start_plug(&plug);
	while (rust_write_dontcache_inodes(wb, &work, left) &&
	       work.nr_pages > 0)
		;
	blk_finish_plug(&plug);
	return nr_pages - work.nr_pages;
}

/* Whether pages are left to be written for a kick: the next round is for them. */
static bool rust_wb_leave(struct bdi_writeback *wb)
{
	return !static_branch_unlikely(&rust_writeback_policy_key) &&
	       rust_dontcache_leave(wb);
}

static long rust_wb_write_kicked(struct bdi_writeback *wb, long most)
{
	bool left = test_bit(WB_dontcache_left, &wb->state);
	s64 nr_pages = rust_dontcache_consume(wb);
	long written;

	if (nr_pages <= 0)
		return 0;
	written = rust_wb_write_dontcache(wb, min(nr_pages, most), left);
	assign_bit(WB_dontcache_stuck, &wb->state, !written);
	rust_wb_leave(wb);
	return written;
}

static long rust_wb_check_start_dontcache(struct bdi_writeback *wb)
{
	return rust_wb_write_kicked(wb, LONG_MAX);
}

/*
 * For a kick within @sync, which is to write the inodes of one super block that
 * were dirtied before @dirtied_before: those of them that have dirty dropbehind
 * pages come first from now on. @work is for others, of another super block or
 * dirtied later. What it leaves of them must not become @sync's, or that might
 * never end.
 */
static void rust_write_dontcache_beside_sync(struct bdi_writeback *wb,
					     struct wb_writeback_work *sync,
					     unsigned long dirtied_before,
					     struct wb_writeback_work *work,
					     bool left)
{
	unsigned int more = left ? RUST_DONTCACHE_LOOKS_LEFT : 0;
	long inodes = left ? LONG_MAX : RUST_DONTCACHE_INODES;
	struct inode *inode, *next;
	struct list_head *old;
	LIST_HEAD(believed);
	LIST_HEAD(others);
	LIST_HEAD(found);
	LIST_HEAD(later);
	LIST_HEAD(own);

	guard(spinlock)(&wb->list_lock);
	trace_writeback_start(wb, work);
	/* What is @sync's keeps its date then, even if it meets an fsync(). */
	queue_io(wb, sync, dirtied_before);
	rust_queue_dontcache(&wb->b_io, &more, inodes, &found, &believed);
	list_splice_tail_init(&believed, &found);
	list_for_each_entry_safe(inode, next, &found, i_io_list)
		list_move(&inode->i_io_list,
			  inode->i_sb == sync->sb ? &own : &others);
	list_splice_tail(&own, &wb->b_io);
	list_splice_tail_init(&wb->b_io, &wb->b_more_io);

	list_for_each(old, &wb->b_dirty)
		if (!inode_dirtied_after(wb_inode(old), dirtied_before))
			break;
	list_cut_before(&later, &wb->b_dirty, old);
	rust_queue_dontcache(&later, &more, inodes, &found, &believed);
	list_splice(&later, &wb->b_dirty);
	list_splice_tail(&believed, &found);
	rust_turn_over(&found, &wb->b_io);
	list_splice_tail(&others, &wb->b_io);
	__writeback_inodes_wb(wb, work);

	while (!list_empty(&wb->b_io))
		redirty_tail(wb_inode(wb->b_io.prev), wb);
	list_for_each_entry_safe(inode, next, &wb->b_more_io, i_io_list) {
		if (inode->i_sb == sync->sb &&
		    !inode_dirtied_after(inode, dirtied_before))
			break;
		redirty_tail(inode, wb);
	}
	trace_writeback_written(wb, work);
}

/*
 * Between two portions of @sync, which is for sync() or its like. Not between
 * all of them: somebody waits for it.
 */
static void rust_wb_serve_beside_sync(struct bdi_writeback *wb,
				      struct wb_writeback_work *sync,
				      unsigned long dirtied_before)
{
	bool left = test_bit(WB_dontcache_left, &wb->state);
	struct wb_writeback_work work = {
		.sync_mode	= WB_SYNC_NONE,
		.range_cyclic	= 1,
		.reason		= WB_REASON_DONTCACHE,
	};

	if (sync->kick_served && time_before(jiffies, sync->kick_served +
						      RUST_DONTCACHE_IN_SYNC))
		return;
	work.nr_pages = min(rust_dontcache_consume(wb), RUST_DONTCACHE_PORTION);
	if (work.nr_pages <= 0)
		return;
	rust_write_dontcache_beside_sync(wb, sync, dirtied_before, &work, left);
	rust_wb_leave(wb);
	sync->kick_served = jiffies;
}

/*
 * Between two portions of @work, which is for what was dirtied before
 * @dirtied_before, and between two works, where there is none: so that neither
 * many nor long ones delay a kick, or what the last one left. A work that waits
 * has to wait for a portion of a kick only.
 */
static void rust_wb_serve_kick(struct bdi_writeback *wb,
			       struct wb_writeback_work *work,
			       unsigned long dirtied_before)
{
	if (!rust_writeback_active() ||
	    !(test_bit(WB_start_dontcache, &wb->state) ||
	      test_bit(WB_dontcache_left, &wb->state)))
		return;
	if (work && work->sb)
		rust_wb_serve_beside_sync(wb, work, dirtied_before);
	else
		rust_wb_write_kicked(wb, work && list_empty(&wb->work_list) ?
					 LONG_MAX : RUST_DONTCACHE_PORTION);
}

/*
 * Before the rescuer writes what is first in the flusher's lists, and rests
 * however much of that there is. It looks again for what it leaves.
 */
static void rust_wb_rescue_kick(struct bdi_writeback *wb)
{
	if (rust_writeback_active())
		rust_wb_write_kicked(wb, RUST_DONTCACHE_PORTION);
}

/*
 * No inode is listed as dirty: as a rule nothing is to be counted, and there is
 * nothing for a kick, whose pages others have written.
 */
static void rust_wb_heal(struct bdi_writeback *wb)
{
	s64 pages;

	rust_dontcache_consume(wb);
	pages = rust_dontcache_heal(wb);
	if (pages)
		pr_warn("%s: %lld pages were counted as dirty dropbehind, but none is\n",
			bdi_dev_name(wb->bdi), pages);
}

/*
 * The flusher is about to rest. Pages that it has not written for a kick, or
 * that have come with an inode from another wb, are tried again soon; at
 * leisure if they cannot be written, as after a shutdown of their file system.
 * Some may be counted although no inode is dirty: somebody has dirtied theirs,
 * and not put it into a list yet, or has unhashed it. No periodic writeback is
 * needed for any of it.
 */
static void rust_wb_look_again(struct bdi_writeback *wb)
{
	struct timer_list *timer = &wb->dwork.timer;

	if (!rust_writeback_active())
		return;
	if (!wb_has_dirty_io(wb))
		rust_wb_heal(wb);
	if (!rust_wb_leave(wb)) {
		clear_bit(WB_dontcache_stuck, &wb->state);
	} else {
		long delay = test_bit(WB_dontcache_stuck, &wb->state) ?
			     RUST_DONTCACHE_STUCK : RUST_DONTCACHE_AGAIN;

		guard(spinlock_irq)(&wb->work_lock);
		if (!test_bit(WB_registered, &wb->state) ||
		    queue_delayed_work(bdi_wq, &wb->dwork, delay))
			return;
		/* It is to run anyway, but maybe for what is old, and late. */
		if (timer_pending(timer) &&
		    time_after(timer->expires, jiffies + delay))
			mod_delayed_work(bdi_wq, &wb->dwork, delay);
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
			       struct wb_writeback_work *work,
			       unsigned long dirtied_before)
{
}

static void rust_wb_rescue_kick(struct bdi_writeback *wb)
{
}

static void rust_wb_look_again(struct bdi_writeback *wb)
{
}

#endif /* CONFIG_RUST_WRITEBACK */
