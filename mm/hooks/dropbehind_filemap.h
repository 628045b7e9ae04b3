/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The parts of filemap.c for dropbehind. Only filemap.c includes this file,
 * before the C code that ends dropbehind.
 */
#ifdef CONFIG_RUST_WRITEBACK

/*
 * delete_from_page_cache_batch() in parts: Rust checks each folio in between.
 */
void dropbehind_lock(struct address_space *mapping)
{
	spin_lock(&mapping->host->i_lock);
	xa_lock_irq(&mapping->i_pages);
}

/* Whether one call can update the statistics for both folios. */
static bool dropbehind_same_stat(struct folio *folio, struct folio *next)
{
	return !folio_test_large(next) &&
	       folio_pgdat(folio) == folio_pgdat(next) &&
	       folio_memcg(folio) == folio_memcg(next);
}

static void dropbehind_unaccount(struct address_space *mapping,
				 struct folio *const *folios, unsigned int nr)
{
	bool special = test_bit(AS_KERNEL_FILE, &mapping->flags);
	int nr_pages = 0;

	guard(rcu)();
	for (unsigned int i = 0; i < nr; i++) {
		struct folio *folio = folios[i];

		trace_mm_filemap_delete_from_page_cache(folio);
		if (special || folio_test_large(folio)) {
			filemap_unaccount_folio(mapping, folio);
			continue;
		}
		nr_pages++;
		if (i + 1 < nr && dropbehind_same_stat(folio, folios[i + 1]))
			continue;
		lruvec_stat_mod_folio(folio, NR_FILE_PAGES, -nr_pages);
		nr_pages = 0;
	}
}

void dropbehind_remove(struct address_space *mapping,
		       struct folio *const *folios, unsigned int nr)
{
	XA_STATE(xas, &mapping->i_pages, 0);
	unsigned int i = 0;

	dropbehind_unaccount(mapping, folios, nr);
	mapping_set_update(&xas, mapping);
	while (i < nr) {
		unsigned int order = folio_order(folios[i]);
		pgoff_t first = folios[i]->index, next = first, end = first;

		xas_set(&xas, first);
		xas_load(&xas);
		if (xas.xa_node)
			end = round_up(first + 1,
				       XA_CHUNK_SIZE << xas.xa_node->shift);
		/* Folios of the same order have their entries in this node. */
		do {
			folios[i]->mapping = NULL;
			next += 1UL << order;
		} while (++i < nr && next < end && folios[i]->index == next &&
			 folio_order(folios[i]) == order);
		xas_erase(&xas, next - first);
		mapping->nrpages -= next - first;
	}
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
 * A lookup found @folio in @mapping. Clear dropbehind, because the folio has
 * another user, unless the lookup is for DONTCACHE or only locks the folio, as
 * truncation does. A DONTCACHE write clears PG_referenced: the folio need not
 * wait for another write. Unlike in C, a folio without dropbehind is not written
 * to. Returns true if C has nothing to do.
 */
static __always_inline bool
dropbehind_found(struct folio *folio, struct address_space *mapping,
		 fgf_t fgp_flags)
{
	if (!rust_writeback_active())
		return false;
	if (!folio_test_dropbehind(folio) || fgp_flags == FGP_LOCK)
		return true;
	if (!(fgp_flags & FGP_DONTCACHE))
		dropbehind_claim(folio, mapping);
	else if (fgp_flags & FGP_WRITE && folio_test_referenced(folio))
		folio_clear_referenced(folio);
	return true;
}
