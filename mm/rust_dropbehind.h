/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The end of dropbehind where the folio could not be dropped at once: its
 * hooks, as the C that they stand in sees them.
 */
#ifndef _LINUX_RUST_DROPBEHIND_H
#define _LINUX_RUST_DROPBEHIND_H

#include <linux/mm.h>
#include <linux/rust_writeback.h>

#ifdef CONFIG_RUST_WRITEBACK

/* mm/dropbehind_later.rs */
void rust_drop_later(struct folio *folio);

/* mm/filemap.c, for mm/dropbehind_later.rs; @folio is locked */
void rust_end_dropbehind(struct folio *folio);

/*
 * @folio was to be dropped. If it is still to be, because somebody else had it
 * locked or this is an interrupt, it is tried again. A folio that is dirty or
 * under writeback meanwhile is dropped at the end of that.
 */
static inline void rust_drop_if_left(struct folio *folio)
{
	if (rust_writeback_active() && folio_test_dropbehind(folio) &&
	    !folio_test_dirty(folio) && !folio_test_writeback(folio))
		rust_drop_later(folio);
}

#else /* CONFIG_RUST_WRITEBACK */

static inline void rust_drop_if_left(struct folio *folio)
{
}

#endif /* CONFIG_RUST_WRITEBACK */

#endif /* _LINUX_RUST_DROPBEHIND_H */
