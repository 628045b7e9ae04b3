/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The buffer walks of the Rust core, as the C that they stand in sees them.
 */
#ifndef _LINUX_RUST_BUFFER_WALK_H
#define _LINUX_RUST_BUFFER_WALK_H

#include <linux/buffer_head.h>
#include <linux/rust_writeback.h>
#include <linux/slab.h>

/*
 * What a file system does in the walk that prepares the buffers of a folio for
 * a write. @get_block and @private are what was given to rust_write_begin().
 * The folio is locked.
 */
struct rust_write_begin_ops {
	/*
	 * Map @bh, @block of the file, for a write. NULL where @get_block alone
	 * does it.
	 */
	int (*map)(struct inode *inode, sector_t block, struct buffer_head *bh,
		   get_block_t *get_block, void *private);
	/* Begin to read @bh. */
	void (*read)(struct buffer_head *bh);
	/* After an error: zero what is new in [from, to) and not up to date. */
	void (*abort)(struct folio *folio, size_t from, size_t to,
		      void *private);
	/*
	 * In a folio that is up to date, BH_New stays until ->write_end().
	 * Otherwise the walk clears it, and makes the buffer dirty. A buffer
	 * that is new before the walk triggers a warning if it should stay so.
	 */
	bool keeps_new;
};

#ifdef CONFIG_RUST_WRITEBACK

/* fs/buffer_walk.rs; rust_write_begin() is exported for file systems */
void rust_block_commit_write(struct folio *folio, size_t from, size_t to);
int rust_write_begin(struct folio *folio, loff_t pos, unsigned int len,
		     get_block_t *get_block, void *private,
		     const struct rust_write_begin_ops *ops);
void rust_index_buffers(struct buffer_head *head, size_t folio_size, gfp_t gfp);

/*
 * @head is NULL where a block is larger than @folio. A folio of one page has
 * few blocks: nothing is gained by an index.
 */
static inline void rust_index_new_buffers(struct folio *folio,
					  struct buffer_head *head, gfp_t gfp)
{
	if (rust_writeback_active() && folio_test_large(folio))
		rust_index_buffers(head, folio_size(folio), gfp);
}

/* The index goes with the first buffer; other buffers have none. */
static inline void rust_free_buffer_index(struct buffer_head *bh)
{
	if (unlikely(bh->b_index))
		kfree(bh->b_index);
}

#else /* CONFIG_RUST_WRITEBACK */

static inline void
rust_block_commit_write(struct folio *folio, size_t from, size_t to)
{
}

static inline void rust_index_new_buffers(struct folio *folio,
					  struct buffer_head *head, gfp_t gfp)
{
}

static inline void rust_free_buffer_index(struct buffer_head *bh)
{
}

#endif /* CONFIG_RUST_WRITEBACK */

#endif /* _LINUX_RUST_BUFFER_WALK_H */
