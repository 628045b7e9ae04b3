/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The end of dropbehind, included by filemap.c alone in front of the C's.
 */
#ifdef CONFIG_RUST_WRITEBACK

static void filemap_end_dropbehind(struct folio *folio);

void rust_end_dropbehind(struct folio *folio)
{
	filemap_end_dropbehind(folio);
}

/*
 * @folio is locked and clean. It keeps the flag until it has left @mapping: so
 * it can be tried again if somebody's use of it prevents that, is counted
 * should it become dirty meanwhile, and can be claimed by a lookup. Whoever
 * has mapped it has claimed it.
 */
static inline bool rust_filemap_end_dropbehind(struct folio *folio,
					       struct address_space *mapping)
{
	if (!rust_writeback_active() || !mapping)
		return false;
	if (!folio_test_dropbehind(folio))
		return true;
	if (folio_mapped(folio))
		rust_dontcache_claim(folio, mapping);
	else if (folio_unmap_invalidate(mapping, folio, 0) == 1)
		folio_clear_dropbehind(folio);
	return true;
}

#else /* CONFIG_RUST_WRITEBACK */

static inline bool rust_filemap_end_dropbehind(struct folio *folio,
					       struct address_space *mapping)
{
	return false;
}

#endif /* CONFIG_RUST_WRITEBACK */
