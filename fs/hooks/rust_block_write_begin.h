/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The C part of __block_write_begin_int(). Only buffer.c includes this file:
 * iomap_to_bh() is static there.
 */
static int rust_block_map(struct inode *inode, sector_t block,
			  struct buffer_head *bh, get_block_t *get_block,
			  void *iomap)
{
	int err;

	if (get_block)
		err = get_block(inode, block, bh, 1);
	else
		err = iomap_to_bh(inode, block, bh, iomap);
	if (!err && buffer_new(bh))
		clean_bdev_bh_alias(bh);
	return err;
}

static void rust_block_read(struct buffer_head *bh)
{
	bh_read_nowait(bh, 0);
}

static void rust_block_abort(struct folio *folio, size_t from, size_t to,
			     void *iomap)
{
	folio_zero_new_buffers(folio, from, to);
}

static const struct rust_write_begin_ops rust_block_ops = {
	.map		= rust_block_map,
	.read		= rust_block_read,
	.abort		= rust_block_abort,
};

static inline int
rust_block_write_begin(struct folio *folio, loff_t pos, unsigned int len,
		       get_block_t *get_block, const struct iomap *iomap)
{
	return rust_write_begin(folio, pos, len, get_block, (void *)iomap,
				&rust_block_ops);
}
