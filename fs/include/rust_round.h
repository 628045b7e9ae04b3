/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The flusher's rounds for DONTCACHE writers, in Rust: its hooks, as the C that
 * they stand in sees them.
 */
#ifndef _LINUX_RUST_ROUND_H
#define _LINUX_RUST_ROUND_H

#include <linux/backing-dev-defs.h>
#include <linux/rust_kick.h>

struct address_space;
struct inode;
struct super_block;
struct wb_writeback_work;

#ifdef CONFIG_RUST_WRITEBACK

/* fs/dontcache_round.rs */
long rust_dontcache_flush(struct bdi_writeback *wb);
void rust_dontcache_flush_beside(struct bdi_writeback *wb,
				 struct wb_writeback_work *work,
				 unsigned long dirtied_before);
void rust_dontcache_rest(struct bdi_writeback *wb);
long rust_dontcache_chunk(struct bdi_writeback *wb,
			  struct address_space *mapping, long most);
long rust_dontcache_kept(struct bdi_writeback *wb, long unwritten);
int rust_dontcache_queue(struct bdi_writeback *wb, struct super_block *sb,
			 unsigned long dirtied_before);
bool rust_dontcache_keeps(struct address_space *mapping,
			  struct bdi_writeback *wb);
void rust_dontcache_switched(struct address_space *mapping,
			     struct bdi_writeback *wb);

/* fs/dontcache_pace.rs */
enum rust_pace_bound {
	RUST_PACE_LEAST_KIB,
	RUST_PACE_MOST_KIB,
	RUST_PACE_INODE_KIB,
	RUST_PACE_LEAST_MS,
	RUST_PACE_MOST_MS,
	NR_RUST_PACE_BOUNDS
};

void rust_pace_init(struct bdi_writeback *wb);
void rust_pace_get_bounds(unsigned int *numbers);
int rust_pace_set_bounds(const unsigned int *numbers);

/* fs/rust_flusher.h, for rust/kernel/flusher.rs */
struct bdi_writeback *rust_wb_lock_list_of(struct inode *inode);
void rust_wb_move_inode(struct inode *inode, struct bdi_writeback *wb,
			struct list_head *list);
long rust_wb_write_queued(struct bdi_writeback *wb, long *nr_pages,
			  enum wb_reason reason);
struct super_block *rust_wb_work_sb(struct wb_writeback_work *work);

/* fs/dontcache_policy.rs */
int rust_dontcache_choose_policy(const char *name);
const char *rust_dontcache_policy_name(void);

/* mm/rust_background.h: for the flusher of @wb, in pages */
unsigned long rust_wb_background(struct bdi_writeback *wb);

/* mm/rust_filemap_flush.h */
int rust_filemap_flush_range_nr(struct address_space *mapping, loff_t first,
				loff_t last, long nr_pages);

/* fs/rust_round.c: @wb begins and ends; it must not count anything then */
void rust_wb_init(struct bdi_writeback *wb);
void rust_wb_exit(struct bdi_writeback *wb);

/* fs/rust_round.c: the inodes in b_dontcache of @wb */
size_t rust_wb_nr_dontcache(struct bdi_writeback *wb);
bool rust_wb_has_dontcache(struct bdi_writeback *wb);

/* fs/rust_round.c: for the whole system, at any time */
int rust_writeback_set_policy(const char *name);
const char *rust_writeback_policy(void);

#ifdef CONFIG_RUST_WRITEBACK_AB
/* fs/rust_flusher.h, for tests: what the flusher does with a kick */
long dontcache_test_flush(struct bdi_writeback *wb);
#endif

/* The inode of @mapping has got into the lists of @wb, under the lock of pages. */
static inline void rust_inode_switched(struct address_space *mapping,
				       struct bdi_writeback *wb)
{
	if (rust_writeback_active())
		rust_dontcache_switched(mapping, wb);
}

/* Work of @wb takes what is old: how many inodes it has got besides. */
static inline int rust_queue_dontcache(struct bdi_writeback *wb,
				       struct super_block *sb,
				       unsigned long dirtied_before)
{
	if (!rust_writeback_active())
		return 0;
	return rust_dontcache_queue(wb, sb, dirtied_before);
}

/* Whether work of @reason is a round's: these are together in enum wb_reason. */
static inline bool rust_is_round(enum wb_reason reason)
{
	return rust_writeback_active() && reason >= WB_REASON_DONTCACHE &&
	       reason <= WB_REASON_DONTCACHE_SYNC;
}

/* How many pages of @mapping are written at a time: at most @most. */
static inline long rust_chunk(struct bdi_writeback *wb,
			      struct address_space *mapping,
			      enum wb_reason reason, long most)
{
	if (!rust_is_round(reason))
		return most;
	return rust_dontcache_chunk(wb, mapping, most);
}

/*
 * @unwritten of the pages that rust_chunk() allowed were not written. How many
 * behind them were left on purpose: for the work these are as good as written.
 */
static inline long rust_kept(struct bdi_writeback *wb, enum wb_reason reason,
			     long unwritten)
{
	if (!rust_is_round(reason))
		return 0;
	return rust_dontcache_kept(wb, unwritten);
}

/* The list of @wb that the dirty @mapping gets into instead of @list. */
static inline struct list_head *rust_dirty_list(struct address_space *mapping,
						struct bdi_writeback *wb,
						struct list_head *list)
{
	if (!rust_writeback_active() || list != &wb->b_dirty ||
	    !rust_dontcache_keeps(mapping, wb))
		return list;
	return &wb->b_dontcache;
}

/* Between two portions of @work, or before the next if it is NULL. */
static inline void rust_wb_serve_kick(struct bdi_writeback *wb,
				      struct wb_writeback_work *work,
				      unsigned long dirtied_before)
{
	if (rust_writeback_active())
		rust_dontcache_flush_beside(wb, work, dirtied_before);
}

/* The flusher is about to rest. */
static inline void rust_wb_look_again(struct bdi_writeback *wb)
{
	if (rust_writeback_active())
		rust_dontcache_rest(wb);
}

#else /* CONFIG_RUST_WRITEBACK */

static inline void rust_wb_init(struct bdi_writeback *wb)
{
}

static inline void rust_wb_exit(struct bdi_writeback *wb)
{
}

static inline size_t rust_wb_nr_dontcache(struct bdi_writeback *wb)
{
	return 0;
}

static inline bool rust_wb_has_dontcache(struct bdi_writeback *wb)
{
	return false;
}

static inline void rust_inode_switched(struct address_space *mapping,
				       struct bdi_writeback *wb)
{
}

static inline int rust_queue_dontcache(struct bdi_writeback *wb,
				       struct super_block *sb,
				       unsigned long dirtied_before)
{
	return 0;
}

static inline long rust_chunk(struct bdi_writeback *wb,
			      struct address_space *mapping,
			      enum wb_reason reason, long most)
{
	return most;
}

static inline long rust_kept(struct bdi_writeback *wb, enum wb_reason reason,
			     long unwritten)
{
	return 0;
}

static inline struct list_head *rust_dirty_list(struct address_space *mapping,
						struct bdi_writeback *wb,
						struct list_head *list)
{
	return list;
}

/* fs/rust_flusher.h */
static inline bool rust_list_dontcache(struct inode *inode,
				       struct bdi_writeback *wb)
{
	return false;
}

static inline void rust_wb_serve_kick(struct bdi_writeback *wb,
				      struct wb_writeback_work *work,
				      unsigned long dirtied_before)
{
}

static inline void rust_wb_look_again(struct bdi_writeback *wb)
{
}

static inline long rust_dontcache_flush(struct bdi_writeback *wb)
{
	return 0;
}

#endif /* CONFIG_RUST_WRITEBACK */

#endif /* _LINUX_RUST_ROUND_H */
