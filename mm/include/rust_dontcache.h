/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Interface of the counter of dirty dropbehind pages in Rust to C.
 *
 * If a hook returns true, the caller skips the C code beside it. Without
 * CONFIG_RUST_WRITEBACK, rust_writeback_active() is a constant and the compiler
 * removes all calls.
 */
#ifndef _LINUX_RUST_DONTCACHE_H
#define _LINUX_RUST_DONTCACHE_H

#include <linux/page-flags.h>
#include <linux/rust_writeback.h>

struct address_space;
struct bdi_writeback;
struct folio;

/* mm/dontcache_counter.rs */
void rust_dontcache_dirtied(struct address_space *mapping,
			    struct bdi_writeback *wb, long nr);
void rust_dontcache_cleaned(struct bdi_writeback *wb, long nr);
void rust_dontcache_claim(struct folio *folio, struct address_space *mapping);
void rust_dontcache_moved(struct folio *folio, struct bdi_writeback *old_wb,
			  struct bdi_writeback *new_wb);

/*
 * The @nr pages of @folio stopped being dirty on @wb. The page cache has been
 * locked since before, so the dropbehind flag is unchanged.
 */
static __always_inline bool
rust_account_dontcache_cleaned(struct folio *folio, struct bdi_writeback *wb,
			       long nr)
{
	if (!rust_writeback_active())
		return false;
	if (folio_test_dropbehind(folio))
		rust_dontcache_cleaned(wb, nr);
	return true;
}

/* The inode of @folio moves to another wb. @folio may be dirty. */
static __always_inline void
rust_account_dontcache_moved(struct folio *folio, struct bdi_writeback *old_wb,
			     struct bdi_writeback *new_wb)
{
	if (rust_writeback_active())
		rust_dontcache_moved(folio, old_wb, new_wb);
}

#endif /* _LINUX_RUST_DONTCACHE_H */
