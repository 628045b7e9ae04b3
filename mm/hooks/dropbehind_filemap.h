/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The parts of filemap.c for dropbehind. Only filemap.c includes this file,
 * before C's end of dropbehind.
 */
#ifdef CONFIG_RUST_WRITEBACK

/* delete_from_page_cache_batch() in parts: Rust checks each folio between. */
void dropbehind_lock(struct address_space *mapping)
{
	spin_lock(&mapping->host->i_lock);
	xa_lock_irq(&mapping->i_pages);
}

void dropbehind_remove(struct address_space *mapping,
		       struct folio *const *folios, unsigned int nr)
{
	XA_STATE(xas, &mapping->i_pages, folios[0]->index);
	unsigned int i = 0;
	long nr_pages = 0;
	struct folio *folio;

	mapping_set_update(&xas, mapping);
	for (folio = xas_load(&xas); folio;
	     folio = xas_next_entry(&xas, ULONG_MAX)) {
		if (folio != folios[i])
			continue;
		trace_mm_filemap_delete_from_page_cache(folio);
		filemap_unaccount_folio(mapping, folio);
		folio->mapping = NULL;
		xas_store(&xas, NULL);
		nr_pages += folio_nr_pages(folio);
		/* Stop here: a search for a next entry is slow. */
		if (++i == nr)
			break;
	}
	mapping->nrpages -= nr_pages;
}

void dropbehind_unlock(struct address_space *mapping)
{
	xa_unlock_irq(&mapping->i_pages);
	if (mapping_shrinkable(mapping))
		inode_lru_list_add(mapping->host);
	spin_unlock(&mapping->host->i_lock);
}

#endif /* CONFIG_RUST_WRITEBACK */

/*
 * A lookup found @folio in @mapping. Clear dropbehind unless this is a
 * DONTCACHE lookup or, unlike in C, a lookup for the lock alone: truncation
 * does not keep the folio. Unlike in C, a folio without dropbehind is not
 * written to. Returns true if C has nothing to do.
 */
static __always_inline bool
dropbehind_found(struct folio *folio, struct address_space *mapping,
		 fgf_t fgp_flags)
{
	if (!rust_writeback_active())
		return false;
	if (folio_test_dropbehind(folio) && !(fgp_flags & FGP_DONTCACHE) &&
	    fgp_flags != FGP_LOCK)
		dropbehind_claim(folio, mapping);
	return true;
}
