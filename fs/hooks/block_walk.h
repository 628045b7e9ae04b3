/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The C part of __block_write_begin_int(). Only buffer.c includes this file:
 * iomap_to_bh() is static there.
 */
static int block_walk_map(struct inode *inode, sector_t block,
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

static void block_walk_read(struct buffer_head *bh)
{
	dropbehind_read_rest(bh->b_folio);
	bh_read_nowait(bh, 0);
}

static void block_walk_abort(struct folio *folio, size_t from, size_t to,
			     void *iomap)
{
	folio_zero_new_buffers(folio, from, to);
}

static const struct buffer_walk_ops block_walk_ops = {
	.map		= block_walk_map,
	.read		= block_walk_read,
	.abort		= block_walk_abort,
};

#ifdef CONFIG_RUST_WRITEBACK
EXPORT_SYMBOL_GPL(buffer_walk_begin);
#endif
