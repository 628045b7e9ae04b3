/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Interface of the Rust buffer walks to C.
 */
#ifndef _LINUX_RUST_BUFFER_WALK_H
#define _LINUX_RUST_BUFFER_WALK_H

#include <linux/buffer_head.h>
#include <linux/rust_writeback.h>

/*
 * File system operations for the walk that prepares a folio's buffers for a
 * write. The walk passes on @get_block and @private of rust_write_begin(). The
 * folio is locked.
 */
struct rust_write_begin_ops {
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

/* fs/buffer_walk.rs; rust_write_begin() is exported for file systems */
void rust_block_commit_write(struct folio *folio, size_t from, size_t to);
int rust_write_begin(struct folio *folio, loff_t pos, unsigned int len,
		     get_block_t *get_block, void *private,
		     const struct rust_write_begin_ops *ops);

#endif /* _LINUX_RUST_BUFFER_WALK_H */
