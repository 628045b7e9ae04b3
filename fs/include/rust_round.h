/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Interface of the flusher's rounds for DONTCACHE writers in Rust to C.
 */
#ifndef _LINUX_RUST_ROUND_H
#define _LINUX_RUST_ROUND_H

#include <linux/backing-dev-defs.h>
#include <linux/jump_label.h>
#include <linux/rust_writeback.h>

struct address_space;
struct inode;
struct super_block;
struct wb_writeback_work;

/* fs/dontcache_round.rs */
long rust_dontcache_flush(struct bdi_writeback *wb);
void rust_dontcache_flush_beside(struct bdi_writeback *wb,
				 struct wb_writeback_work *work,
				 unsigned long dirtied_before);
void rust_dontcache_rest(struct bdi_writeback *wb);
void rust_pace_init(struct bdi_writeback *wb);
long rust_dontcache_chunk(struct bdi_writeback *wb, long most);
int rust_dontcache_queue(struct bdi_writeback *wb, struct super_block *sb,
			 unsigned long dirtied_before);
bool rust_dontcache_keeps(struct address_space *mapping,
			  struct bdi_writeback *wb);
void rust_dontcache_switched(struct address_space *mapping,
			     struct bdi_writeback *wb);

/* fs/dontcache_kick.rs */
void rust_dontcache_kick(struct address_space *mapping);

/* fs/rust_flusher.h, for rust/kernel/flusher.rs */
struct bdi_writeback *rust_wb_lock_list_of(struct inode *inode);
void rust_wb_move_inode(struct inode *inode, struct bdi_writeback *wb,
			struct list_head *list);
long rust_wb_write_queued(struct bdi_writeback *wb, long *nr_pages);
struct super_block *rust_wb_work_sb(struct wb_writeback_work *work);

/* mm/rust_background.h: called by the flusher of @wb; in pages */
unsigned long rust_wb_background(struct bdi_writeback *wb);

#ifdef CONFIG_RUST_WRITEBACK_AB
/* fs/rust_flusher.h, for tests: serve a kick as the flusher does */
long dontcache_test_flush(struct bdi_writeback *wb);

/* fs/dontcache_debugfs.c, for tests: writers do not kick while it is on */
DECLARE_STATIC_KEY_FALSE(dontcache_hold_key);
#endif

/* @mapping's inode has moved to the lists of @wb. i_pages is locked. */
static inline void rust_inode_switched(struct address_space *mapping,
				       struct bdi_writeback *wb)
{
	if (rust_writeback_active())
		rust_dontcache_switched(mapping, wb);
}

/* Queue old b_dontcache inodes for a work item of @wb; returns how many. */
static inline int rust_queue_dontcache(struct bdi_writeback *wb,
				       struct super_block *sb,
				       unsigned long dirtied_before)
{
	if (!rust_writeback_active())
		return 0;
	return rust_dontcache_queue(wb, sb, dirtied_before);
}

/* Limit the chunk of an inode that a round writes to at most @most pages. */
static inline long rust_chunk(struct bdi_writeback *wb, enum wb_reason reason,
			      long most)
{
	if (!rust_writeback_active() || reason != WB_REASON_DONTCACHE)
		return most;
	return rust_dontcache_chunk(wb, most);
}

/* Serve a kick between two portions of @work, or before the next if NULL. */
static inline void rust_wb_serve_kick(struct bdi_writeback *wb,
				      struct wb_writeback_work *work,
				      unsigned long dirtied_before)
{
	if (rust_writeback_active())
		rust_dontcache_flush_beside(wb, work, dirtied_before);
}

/* The flusher is about to sleep: schedule it again if pages are left. */
static inline void rust_wb_look_again(struct bdi_writeback *wb)
{
	if (rust_writeback_active())
		rust_dontcache_rest(wb);
}

/* The rest uses fields that a wb has only with CONFIG_RUST_WRITEBACK. */
#ifdef CONFIG_RUST_WRITEBACK

/* fs/rust_round.c: init and exit of @wb, whose counter must be zero at exit */
void rust_wb_init(struct bdi_writeback *wb);
void rust_wb_exit(struct bdi_writeback *wb);

/* fs/rust_round.c: the inodes in b_dontcache of @wb */
size_t rust_wb_nr_dontcache(struct bdi_writeback *wb);
bool rust_wb_has_dontcache(struct bdi_writeback *wb);

/* Choose the list of @wb for the dirty @mapping: b_dontcache or @list. */
static inline struct list_head *rust_dirty_list(struct address_space *mapping,
						struct bdi_writeback *wb,
						struct list_head *list)
{
	if (!rust_writeback_active() || list != &wb->b_dirty ||
	    !rust_dontcache_keeps(mapping, wb))
		return list;
	return &wb->b_dontcache;
}

#else /* CONFIG_RUST_WRITEBACK */

static inline void rust_wb_init(struct bdi_writeback *wb) { }
static inline void rust_wb_exit(struct bdi_writeback *wb) { }

static inline size_t rust_wb_nr_dontcache(struct bdi_writeback *wb)
{
	return 0;
}

static inline bool rust_wb_has_dontcache(struct bdi_writeback *wb)
{
	return false;
}

static inline struct list_head *rust_dirty_list(struct address_space *mapping,
						struct bdi_writeback *wb,
						struct list_head *list)
{
	return list;
}

#endif /* CONFIG_RUST_WRITEBACK */

#endif /* _LINUX_RUST_ROUND_H */
