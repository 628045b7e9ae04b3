/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The dropbehind pages that are dirty, counted and kicked in Rust: its hooks,
 * as the C that they stand in sees them.
 *
 * A hook that returns true has done the work, and the C beside it is skipped.
 * Without CONFIG_RUST_WRITEBACK that is a constant false.
 */
#ifndef _LINUX_RUST_DONTCACHE_H
#define _LINUX_RUST_DONTCACHE_H

#include <linux/backing-dev-defs.h>
#include <linux/rust_writeback.h>

struct bdi_writeback;
struct folio;
struct inode;
struct list_head;
struct super_block;
struct wb_writeback_work;

#ifdef CONFIG_RUST_WRITEBACK

/* What a disk has written since it is there. */
struct rust_disk_writes {
	unsigned long	writes;
	unsigned long	sectors;
	unsigned int	largest;	/* sectors that it takes at once */
};

/* mm/dontcache_counter.rs */
void rust_dontcache_dirtied(struct address_space *mapping,
			    struct bdi_writeback *wb, long nr);
void rust_dontcache_cleaned(struct bdi_writeback *wb, long nr);
void rust_dontcache_claim(struct folio *folio, struct address_space *mapping);
void rust_dontcache_moved(struct folio *folio, struct bdi_writeback *old_wb,
			  struct bdi_writeback *new_wb);

/* fs/dontcache_round.rs */
long rust_dontcache_flush(struct bdi_writeback *wb);
void rust_dontcache_flush_beside(struct bdi_writeback *wb,
				 struct wb_writeback_work *work,
				 unsigned long dirtied_before);
void rust_dontcache_rest(struct bdi_writeback *wb);
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

/* fs/rust_flusher.h, for the edges */
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

/* mm/rust_writeback.c: @wb begins and ends; it must not count anything then */
void rust_wb_init(struct bdi_writeback *wb);
void rust_wb_exit(struct bdi_writeback *wb);

/* mm/rust_writeback.c: the dirty inodes of @wb that are not in b_dirty */
size_t rust_wb_nr_dontcache(struct bdi_writeback *wb);
bool rust_wb_has_dontcache(struct bdi_writeback *wb);

/* mm/rust_writeback.c: for the whole system, at any time */
int rust_writeback_set_policy(const char *name);
const char *rust_writeback_policy(void);

/* fs/rust_flusher.h, for tests: what the flusher does with a kick */
long dontcache_test_flush(struct bdi_writeback *wb);

/*
 * The @nr pages of @folio stopped being dirty on @wb. The lock of the page cache
 * has been held since before: @folio is as dropbehind as it was.
 */
static __always_inline bool
rust_account_dontcache_cleaned(struct folio *folio, struct bdi_writeback *wb,
			       long nr)
{
	if (!rust_writeback_active())
		return false;
	if (folio_test_dropbehind(folio))
		rust_dontcache_cleaned(wb, nr);
	return true;
}

/* The inode of @folio, which may be dirty, gets another wb. */
static __always_inline void
rust_account_dontcache_moved(struct folio *folio, struct bdi_writeback *old_wb,
			     struct bdi_writeback *new_wb)
{
	if (rust_writeback_active())
		rust_dontcache_moved(folio, old_wb, new_wb);
}

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

static inline bool
rust_account_dontcache_cleaned(struct folio *folio, struct bdi_writeback *wb,
			       long nr)
{
	return false;
}

static inline void
rust_account_dontcache_moved(struct folio *folio, struct bdi_writeback *old_wb,
			     struct bdi_writeback *new_wb)
{
}

static inline void rust_dontcache_claim(struct folio *folio,
					struct address_space *mapping)
{
}

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

#endif /* _LINUX_RUST_DONTCACHE_H */
