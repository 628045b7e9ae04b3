// SPDX-License-Identifier: GPL-2.0
/*
 * The end of a file that is zeroed: how a folio is looked at and not claimed.
 */
#include <linux/export.h>
#include <linux/rust_tail.h>
#include <linux/xarray.h>
#include "internal.h"

/* Whether @mapping has a dropbehind folio there. Does not claim it. */
bool rust_is_dropbehind_at(struct address_space *mapping, pgoff_t index)
{
	struct folio *folio = filemap_get_entry(mapping, index);
	bool dropbehind;

	if (!folio || xa_is_value(folio))
		return false;
	dropbehind = folio_test_dropbehind(folio);
	folio_put(folio);
	return dropbehind;
}
EXPORT_SYMBOL_GPL(rust_is_dropbehind_at);
