/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The C part of ext4_block_write_begin(). Only ext4's inode.c includes this
 * file: the journal helpers are static there.
 */
static int ext4_walk_map(struct inode *inode, sector_t block,
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

static void ext4_walk_read(struct buffer_head *bh)
{
	dropbehind_read_rest(bh->b_folio);
	ext4_read_bh_lock(bh, 0, false);
}

static void ext4_walk_abort(struct folio *folio, size_t from, size_t to,
			    void *handle)
{
	struct inode *inode = folio->mapping->host;

	if (ext4_should_journal_data(inode))
		ext4_journalled_zero_new_buffers(handle, inode, folio, from, to);
	else
		folio_zero_new_buffers(folio, from, to);
}

static const struct buffer_walk_ops ext4_walk_ops = {
	.map		= ext4_walk_map,
	.read		= ext4_walk_read,
	.abort		= ext4_walk_abort,
	.keeps_new	= true,
};

/* No handle: no journal credits to ensure and no data to journal. */
static const struct buffer_walk_ops ext4_walk_delayed_ops = {
	.read		= ext4_walk_read,
	.abort		= ext4_walk_abort,
	.keeps_new	= true,
};
