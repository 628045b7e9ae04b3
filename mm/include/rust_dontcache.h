/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The dropbehind pages that are dirty, counted in Rust: its hooks, as the C that
 * they stand in sees them.
 *
 * A hook that returns true has done the work, and the C beside it is skipped.
 * Without CONFIG_RUST_WRITEBACK that is a constant false.
 */
#ifndef _LINUX_RUST_DONTCACHE_H
#define _LINUX_RUST_DONTCACHE_H

#include <linux/page-flags.h>
#include <linux/rust_writeback.h>

struct address_space;
struct bdi_writeback;
struct folio;

#ifdef CONFIG_RUST_WRITEBACK

/* mm/dontcache_counter.rs */
void rust_dontcache_dirtied(struct address_space *mapping,
			    struct bdi_writeback *wb, long nr);
void rust_dontcache_cleaned(struct bdi_writeback *wb, long nr);
void rust_dontcache_claim(struct folio *folio, struct address_space *mapping);
void rust_dontcache_moved(struct folio *folio, struct bdi_writeback *old_wb,
			  struct bdi_writeback *new_wb);

/*
 * The @nr pages of @folio stopped being dirty on @wb. The lock of the page cache
 * has been held since before: @folio is as dropbehind as it was.
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

/* The inode of @folio, which may be dirty, gets another wb. */
static __always_inline void
rust_account_dontcache_moved(struct folio *folio, struct bdi_writeback *old_wb,
			     struct bdi_writeback *new_wb)
{
	if (rust_writeback_active())
		rust_dontcache_moved(folio, old_wb, new_wb);
}

#else /* CONFIG_RUST_WRITEBACK */

static inline bool
rust_account_dontcache_cleaned(struct folio *folio, struct bdi_writeback *wb,
			       long nr)
{
	return false;
}

static inline void
rust_account_dontcache_moved(struct folio *folio, struct bdi_writeback *old_wb,
			     struct bdi_writeback *new_wb)
{
}

static inline void rust_dontcache_claim(struct folio *folio,
					struct address_space *mapping)
{
}

#endif /* CONFIG_RUST_WRITEBACK */

#endif /* _LINUX_RUST_DONTCACHE_H */
