/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Interface between C and the writeback core in Rust.
 *
 * Without CONFIG_RUST_WRITEBACK, rust_writeback_active() is a constant and the
 * compiler removes the hooks.
 */
#ifndef _LINUX_RUST_WRITEBACK_H
#define _LINUX_RUST_WRITEBACK_H

#include <linux/bio.h>
#include <linux/buffer_head.h>
#include <linux/jump_label.h>
#include <linux/pagemap.h>
#include <linux/percpu-defs.h>
#include <linux/sizes.h>
#include <linux/workqueue.h>

#ifdef CONFIG_RUST_WRITEBACK_AB

DECLARE_STATIC_KEY_TRUE(rust_writeback_key);

/* Which core is active: true for Rust, false for C. Fixed at boot. */
static inline bool rust_writeback_active(void)
{
	return static_branch_likely(&rust_writeback_key);
}

#else /* CONFIG_RUST_WRITEBACK_AB */

static inline bool rust_writeback_active(void)
{
	return IS_ENABLED(CONFIG_RUST_WRITEBACK);
}

#endif /* CONFIG_RUST_WRITEBACK_AB */

/*
 * Counter of dirty dropbehind pages: mm/dontcache_account.rs
 */
void dontcache_dirtied(struct address_space *mapping, struct bdi_writeback *wb,
		       long nr);
void dontcache_cleaned(struct bdi_writeback *wb, long nr);
void dropbehind_claim(struct folio *folio, struct address_space *mapping);
bool dropbehind_mark(struct folio *folio);

/*
 * mm/dontcache_account.h: returns the page cache if @folio was clean, else NULL
 */
struct address_space *dropbehind_dirty_buffers(struct folio *folio);

/* True if @folio is dirty and its writeback will include the caller's data. */
static inline bool folio_stays_dirty(const struct folio *folio)
{
	if (!folio_test_dirty(folio))
		return false;
	/*
	 * Order the caller's data before the test, as in mark_buffer_dirty().
	 */
	smp_mb();
	return folio_test_dirty(folio);
}

/*
 * True if @folio is dropbehind and the core is in Rust. Then @folio must be made
 * dirty under the lock of its page cache, and be claimed before its dirty data
 * is cancelled. If the caller has locked or mapped @folio, an ordinary folio does
 * not become dropbehind after this test (see dropbehind_mark()).
 */
static inline bool dropbehind_active(const struct folio *folio)
{
	return rust_writeback_active() && folio_test_dropbehind(folio);
}

/*
 * Whether @mapping has a dropbehind folio at @pos. Zeroing the end of a block
 * does not use the folio, but an ordinary lookup would clear dropbehind.
 */
static inline bool dropbehind_zeroes(struct address_space *mapping, loff_t pos)
{
	struct folio *folio;
	bool dropbehind;

	if (!rust_writeback_active())
		return false;
	folio = __filemap_get_folio(mapping, pos >> PAGE_SHIFT, FGP_DONTCACHE, 0);
	if (IS_ERR(folio))
		return false;
	dropbehind = folio_test_dropbehind(folio);
	folio_put(folio);
	return dropbehind;
}

/*
 * The length to pass to the lookup of the first folio of a write. A page that the
 * write covers in part gets a folio of its own, which may wait for another write.
 */
static inline size_t dropbehind_first_len(bool dontcache, loff_t pos, size_t len)
{
	if (rust_writeback_active() && dontcache && offset_in_page(pos))
		return 1;
	return len;
}

/*
 * A write to a part of @folio has read the rest. @folio waits for about 600 ms
 * before it is dropped, because a write to the rest may follow.
 */
static inline void dropbehind_read_rest(struct folio *folio)
{
	if (dropbehind_active(folio))
		folio_set_referenced(folio);
}

/*
 * Kick and round: fs/dontcache_kick.rs, fs/dontcache_round.rs
 */
void dontcache_kick(struct address_space *mapping);
long dontcache_flush(struct bdi_writeback *wb);
void dontcache_flush_beside(struct bdi_writeback *wb, bool next_work,
			    struct super_block *sb,
			    unsigned long dirtied_before);
void dontcache_before_sleep(struct bdi_writeback *wb);
void dontcache_init(struct bdi_writeback *wb);
int dontcache_queue(struct bdi_writeback *wb, struct super_block *sb,
		    unsigned long dirtied_before);
bool dontcache_keeps(struct inode *inode, struct bdi_writeback *wb);

/* fs/dontcache_round.h, for rust/kernel/flusher.rs */
struct bdi_writeback *wb_lock_list_of(struct inode *inode);
void wb_move_inode(struct inode *inode, struct bdi_writeback *wb,
		   struct list_head *list);
void wb_run_within(struct bdi_writeback *wb, unsigned int ms);
long wb_write_queued(struct bdi_writeback *wb, long *nr_pages, long portion);

/* mm/dontcache_account.h: called by the flusher of @wb; in pages */
unsigned long wb_background_pages(struct bdi_writeback *wb);

/* fs/dontcache_round.h: a field of @wb that only CONFIG_RUST_WRITEBACK has */
struct list_head *wb_dontcache_list(struct bdi_writeback *wb);

#ifdef CONFIG_RUST_WRITEBACK_AB
/* fs/dontcache_hold.h, for tests: serve a kick as the flusher does */
long dontcache_test_flush(struct bdi_writeback *wb);

/* fs/dontcache_debugfs.c, for tests: no round is requested while it is on */
DECLARE_STATIC_KEY_FALSE(dontcache_hold_key);

/* block/bio_micro.h, for the micro-benchmark */
void bio_micro_work(void);
#endif

/*
 * Walk over the buffers of a folio: fs/buffer_walk.rs
 */

/*
 * File system operations for the walk that prepares a folio's buffers for a
 * write. The walk passes on @get_block and @private of buffer_walk_begin(). The
 * folio is locked.
 */
struct buffer_walk_ops {
	/*
	 * Map @bh to @block of the file for a write. If NULL, the walk calls
	 * @get_block alone.
	 */
	int (*map)(struct inode *inode, sector_t block, struct buffer_head *bh,
		   get_block_t *get_block, void *private);
	/* Start a read of @bh. */
	void (*read)(struct buffer_head *bh);
	/* After an error, zero new buffers in [from, to) not up to date. */
	void (*abort)(struct folio *folio, size_t from, size_t to,
		      void *private);
	/*
	 * In a folio that is up to date, BH_New stays set until ->write_end().
	 * If false, the walk clears BH_New and dirties the buffer. With true, a
	 * buffer that is new before the walk triggers a warning.
	 */
	bool keeps_new;
};

/* buffer_walk_begin() is exported for file systems */
int buffer_walk_begin(struct folio *folio, loff_t pos, unsigned int len,
		      get_block_t *get_block, void *private,
		      const struct buffer_walk_ops *ops);
void buffer_walk_commit(struct folio *folio, size_t from, size_t to);

/*
 * Drop of dropbehind folios: mm/dropbehind.rs
 *
 * Folios whose writeback has ended on a CPU wait in its ring until a worker
 * drops them. A kfifo would not do: a work item that finds it empty could miss
 * the next folio. Here both sides change the slot atomically.
 */
enum {
	DROPBEHIND_SLOTS	= SZ_2M / PAGE_SIZE,	/* most folios have one page */
};

struct dropbehind_ring {
	/* for rust/kernel/dropbehind.rs alone */
	struct folio		*slots[DROPBEHIND_SLOTS];
	unsigned long		nr_put;

	/* as above; only the work item changes it */
	unsigned long		nr_taken ____cacheline_aligned_in_smp;
	struct delayed_work	work;
};

void dropbehind_end(struct folio *folio);
void dropbehind_drop_locked(struct folio *folio);
void dropbehind_work(struct work_struct *work);

/* mm/dropbehind_ring.c, for rust/kernel/dropbehind.rs */
DECLARE_PER_CPU_ALIGNED(struct dropbehind_ring, dropbehind_rings);
void dropbehind_begin(struct dropbehind_ring *ring, unsigned int ms, bool anew);
void dropbehind_del_lru(struct folio *const *folios, unsigned int nr);

/* mm/dropbehind_filemap.h, for rust/kernel/dropbehind.rs */
void dropbehind_lock(struct address_space *mapping);
void dropbehind_remove(struct address_space *mapping,
		       struct folio *const *folios, unsigned int nr);
void dropbehind_unlock(struct address_space *mapping);

/*
 * Completion of bios in task context: block/bio_task.rs
 */
struct bio_task {
	struct bio		*last;	/* for rust/kernel/bio.rs alone */
	struct work_struct	work;
};

void bio_task_add(struct bio *bio);
void bio_task_run(struct work_struct *work);
bool bio_can_end_here(struct bio *bio);

/* block/bio_task_worker.c, for rust/kernel/bio.rs */
DECLARE_PER_CPU(struct bio_task, bio_tasks);
void bio_task_begin(struct bio_task *task);
unsigned int bio_nr_dropbehind(struct bio *bio, unsigned int most);

/*
 * Returns true if a worker will end @bio, which asks for completion in a task.
 * A bio that needs the task only to drop its folios may end in an atomic
 * context: the folios wait for the task then. A large folio with buffers has a
 * bio for each buffer: do not call bio_can_end_here() for each of them.
 */
static inline bool bio_waits_for_task(struct bio *bio)
{
	if (!rust_writeback_active() || !bio_in_atomic())
		return false;
	if (bio->bi_vcnt && !folio_test_large(bio_first_folio_all(bio)) &&
	    bio_can_end_here(bio)) {
		bio_clear_flag(bio, BIO_COMPLETE_IN_TASK);
		return false;
	}
	bio_task_add(bio);
	return true;
}

#endif /* _LINUX_RUST_WRITEBACK_H */
