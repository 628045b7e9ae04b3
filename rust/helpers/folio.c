// SPDX-License-Identifier: GPL-2.0

#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/page-flags.h>
#include <linux/pagemap.h>

__rust_helper void rust_helper_folio_get(struct folio *folio)
{
	folio_get(folio);
}

__rust_helper void rust_helper_folio_put(struct folio *folio)
{
	folio_put(folio);
}

__rust_helper void rust_helper_folio_put_refs(struct folio *folio, int refs)
{
	folio_put_refs(folio, refs);
}

__rust_helper unsigned long rust_helper_folio_nr_pages(const struct folio *folio)
{
	return folio_nr_pages(folio);
}

__rust_helper void rust_helper_folio_mark_uptodate(struct folio *folio)
{
	folio_mark_uptodate(folio);
}

__rust_helper void
rust_helper_folio_zero_segments(struct folio *folio, size_t start1, size_t xend1,
				size_t start2, size_t xend2)
{
	folio_zero_segments(folio, start1, xend1, start2, xend2);
}

__rust_helper bool rust_helper_folio_trylock(struct folio *folio)
{
	return folio_trylock(folio);
}

/* Both return all flags from before the change. */
__rust_helper unsigned long
rust_helper_folio_fetch_clear_dropbehind(struct folio *folio)
{
	return atomic_long_fetch_andnot(BIT(PG_dropbehind),
					(atomic_long_t *)&folio->flags.f);
}

__rust_helper unsigned long
rust_helper_folio_fetch_set_dropbehind(struct folio *folio)
{
	return atomic_long_fetch_or(BIT(PG_dropbehind),
				    (atomic_long_t *)&folio->flags.f);
}

__rust_helper void rust_helper_folio_clear_dropbehind(struct folio *folio)
{
	folio_clear_dropbehind(folio);
}

__rust_helper bool rust_helper_folio_mapped(const struct folio *folio)
{
	return folio_mapped(folio);
}
