/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Makes dropbehind folios dirty and clean, and reads the background threshold.
 * Only page-writeback.c includes this file. rust/kernel/writeback/account.rs
 * explains the rules.
 */

/*
 * Like __folio_mark_dirty(), but sets the dirty flag too, under the lock.
 * Returns true if @folio was clean.
 */
static __always_inline bool
dropbehind_dirty(struct folio *folio, struct address_space *mapping,
		 int warn)
{
	unsigned long flags;
	bool newly_dirty;

	if (folio_stays_dirty(folio))
		return false;
	xa_lock_irqsave(&mapping->i_pages, flags);
	newly_dirty = !folio_test_set_dirty(folio);
	if (newly_dirty && folio->mapping) {	/* Race with truncate? */
		WARN_ON_ONCE(warn && !folio_test_uptodate(folio));
		folio_account_dirtied(folio, mapping);
		/* Count only pages that are written back. */
		if (folio_test_dropbehind(folio) &&
		    mapping_can_writeback(mapping))
			dontcache_dirtied(mapping,
					  inode_to_wb(mapping->host),
					  folio_nr_pages(folio));
		__xa_set_mark(&mapping->i_pages, folio->index,
			      PAGECACHE_TAG_DIRTY);
	}
	xa_unlock_irqrestore(&mapping->i_pages, flags);
	return newly_dirty;
}

#ifdef CONFIG_RUST_WRITEBACK
/* For mark_buffer_dirty(). A truncated @folio has no page cache. */
struct address_space *dropbehind_dirty_buffers(struct folio *folio)
{
	struct address_space *mapping = folio->mapping;

	if (mapping && dropbehind_dirty(folio, mapping, 0))
		return mapping;
	return NULL;
}

/*
 * The number of dirty pages at which background writeback of @wb begins: of the
 * system, or of its memory cgroup if that is lower.
 */
unsigned long wb_background_pages(struct bdi_writeback *wb)
{
	struct dirty_throttle_control gdtc = { GDTC_INIT(wb) };
	struct dirty_throttle_control mdtc = { MDTC_INIT(wb, &gdtc) };

	domain_dirty_avail(&gdtc, false);
	domain_dirty_limits(&gdtc);
	if (!mdtc_valid(&mdtc))
		return gdtc.bg_thresh;

	domain_dirty_avail(&mdtc, false);
	domain_dirty_limits(&mdtc);
	return min(gdtc.bg_thresh, mdtc.bg_thresh);
}
#endif

/* Like filemap_dirty_folio(). */
static bool dropbehind_dirty_folio(struct address_space *mapping,
				   struct folio *folio)
{
	if (!dropbehind_dirty(folio, mapping, !folio_test_private(folio)))
		return false;
	__mark_inode_dirty(mapping->host, I_DIRTY_PAGES);
	return true;
}

/*
 * Clears dirty and returns whether it was set. If @folio was dropbehind at that
 * moment, its pages leave the counter. An ordinary folio does not become
 * dropbehind meanwhile, because the caller has locked it.
 */
static __always_inline bool
dropbehind_test_clear_dirty(struct folio *folio, struct bdi_writeback *wb)
{
	const unsigned long both = BIT(PG_dirty) | BIT(PG_dropbehind);
	unsigned long flags;

	if (!dropbehind_active(folio))
		return folio_test_clear_dirty(folio);
	flags = atomic_long_fetch_andnot(BIT(PG_dirty),
					 (atomic_long_t *)folio_flags(folio, 0));
	if ((flags & both) == both)
		dontcache_cleaned(wb, folio_nr_pages(folio));
	return flags & BIT(PG_dirty);
}
