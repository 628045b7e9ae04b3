/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is private to filemap.c, which alone includes this.
 */
#ifdef CONFIG_RUST_WRITEBACK

void rust_end_dropbehind(struct folio *folio)
{
	filemap_end_dropbehind(folio);
}

#endif /* CONFIG_RUST_WRITEBACK */
