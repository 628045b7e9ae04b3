/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The C part of ext4_block_write_begin(). Only ext4's inode.c includes this
 * file: the journal helpers are static there.
 */
static int rust_ext4_map(struct inode *inode, sector_t block,
			 struct buffer_head *bh, get_block_t *get_block,
			 void *handle)
{
	int err = ext4_journal_ensure_extent_credits(handle, inode);

	if (!err)
		err = get_block(inode, block, bh, 1);
	/* The walk may zero the new buffer: get journal write access first. */
	if (!err && buffer_new(bh) && ext4_should_journal_data(inode))
		do_journal_get_write_access(handle, inode, bh);
	return err;
}

static void rust_ext4_read(struct buffer_head *bh)
{
	ext4_read_bh_lock(bh, 0, false);
}

static void rust_ext4_abort(struct folio *folio, size_t from, size_t to,
			    void *handle)
{
	struct inode *inode = folio->mapping->host;

	if (ext4_should_journal_data(inode))
		ext4_journalled_zero_new_buffers(handle, inode, folio, from, to);
	else
		folio_zero_new_buffers(folio, from, to);
}

static const struct rust_write_begin_ops rust_ext4_ops = {
	.map		= rust_ext4_map,
	.read		= rust_ext4_read,
	.abort		= rust_ext4_abort,
	.keeps_new	= true,
};

/* No handle: no journal credits to ensure and no data to journal. */
static const struct rust_write_begin_ops rust_ext4_delayed_ops = {
	.read		= rust_ext4_read,
	.abort		= rust_ext4_abort,
	.keeps_new	= true,
};

static inline int
rust_ext4_write_begin(handle_t *handle, struct folio *folio, loff_t pos,
		      unsigned int len, get_block_t *get_block)
{
	return rust_write_begin(folio, pos, len, get_block, handle,
				handle ? &rust_ext4_ops :
					 &rust_ext4_delayed_ops);
}
