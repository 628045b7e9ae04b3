/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A flush that is limited both in range and in number, included by filemap.c
 * alone: filemap_writeback() is private to it.
 */
#ifdef CONFIG_RUST_WRITEBACK

int rust_filemap_flush_range_nr(struct address_space *mapping, loff_t first,
				loff_t last, long nr_pages)
{
	return filemap_writeback(mapping, first, last, WB_SYNC_NONE, &nr_pages);
}

#endif /* CONFIG_RUST_WRITEBACK */
