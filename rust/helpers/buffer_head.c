// SPDX-License-Identifier: GPL-2.0

#include <linux/buffer_head.h>

#ifdef CONFIG_BUFFER_HEAD

__rust_helper struct buffer_head *
rust_helper_folio_buffers(const struct folio *folio)
{
	return folio_buffers(folio);
}

__rust_helper void rust_helper_set_buffer_uptodate(struct buffer_head *bh)
{
	set_buffer_uptodate(bh);
}

__rust_helper void rust_helper_clear_buffer_new(struct buffer_head *bh)
{
	clear_buffer_new(bh);
}

__rust_helper void rust_helper_wait_on_buffer(struct buffer_head *bh)
{
	wait_on_buffer(bh);
}

#endif /* CONFIG_BUFFER_HEAD */
