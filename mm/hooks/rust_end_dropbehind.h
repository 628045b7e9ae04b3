/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The parts of filemap.c for dropbehind. Only filemap.c includes this file,
 * before C's end of dropbehind.
 */
#ifdef CONFIG_RUST_WRITEBACK

/* delete_from_page_cache_batch() in parts: Rust checks each folio between. */
void rust_filemap_lock(struct address_space *mapping)
{
	spin_lock(&mapping->host->i_lock);
	xa_lock_irq(&mapping->i_pages);
}

void rust_filemap_delete(struct address_space *mapping,
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

void rust_filemap_unlock(struct address_space *mapping)
{
	xa_unlock_irq(&mapping->i_pages);
	if (mapping_shrinkable(mapping))
		inode_lru_list_add(mapping->host);
	spin_unlock(&mapping->host->i_lock);
}

#endif /* CONFIG_RUST_WRITEBACK */

/* @folio is locked and clean. */
static inline bool rust_filemap_end_dropbehind(struct folio *folio,
					       struct address_space *mapping)
{
	if (!rust_writeback_active() || !mapping)
		return false;
	rust_drop_locked(folio);
	return true;
}

/*
 * True if @folio was added to the current task's batch. The owner identifies
 * the batch, so the task may move to another CPU at any time.
 */
static inline bool rust_drop_together(struct folio *folio)
{
	struct rust_drop_batch *batch;

	if (!rust_writeback_active() || !in_task())
		return false;
	batch = raw_cpu_ptr(&rust_drop_batches);
	return READ_ONCE(batch->owner) == current &&
	       rust_drop_batch_add(batch, folio);
}

/*
 * Retry a drop of @folio that failed, because the folio was locked or this is
 * an interrupt. A folio that is dirty or under writeback is skipped: the end of
 * its writeback drops it.
 */
static inline void rust_drop_if_left(struct folio *folio)
{
	if (rust_writeback_active() && folio_test_dropbehind(folio) &&
	    !folio_test_dirty(folio) && !folio_test_writeback(folio))
		rust_drop_later(folio);
}
