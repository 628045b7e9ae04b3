// SPDX-License-Identifier: GPL-2.0

#include <linux/backing-dev.h>
#include <linux/pagemap.h>
#include <linux/xarray.h>

__rust_helper void
rust_helper_mapping_xas_init(struct address_space *mapping, struct xa_state *xas)
{
	*xas = (struct xa_state)__XA_STATE(&mapping->i_pages, 0, 0, 0);
}

__rust_helper bool rust_helper_xa_is_value(const void *entry)
{
	return xa_is_value(entry);
}

__rust_helper bool
rust_helper_mapping_can_writeback(struct address_space *mapping)
{
	return mapping_can_writeback(mapping);
}
