/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The dropbehind pages that are dirty, counted and kicked in Rust: its hooks,
 * as the C that they stand in sees them.
 *
 * A hook that returns true has done the work, and the C beside it is skipped.
 * Without CONFIG_RUST_WRITEBACK that is a constant false.
 */
#ifndef _LINUX_RUST_DONTCACHE_H
#define _LINUX_RUST_DONTCACHE_H

#include <linux/rust_writeback.h>

struct bdi_writeback;
struct folio;

#ifdef CONFIG_RUST_WRITEBACK

/* mm/dontcache_counter.rs */
void rust_dontcache_dirtied(struct folio *folio, struct address_space *mapping,
			    struct bdi_writeback *wb, long nr);
void rust_dontcache_cleaned(struct folio *folio, struct bdi_writeback *wb,
			    long nr);
void rust_dontcache_claim(struct folio *folio, struct address_space *mapping);
void rust_dontcache_moved(struct folio *folio, struct bdi_writeback *old_wb,
			  struct bdi_writeback *new_wb);

/* mm/dontcache_residue.rs */
s64 rust_dontcache_heal(struct bdi_writeback *wb);
s64 rust_dontcache_healed(void);

/* fs/dontcache_kick.rs */
s64 rust_dontcache_consume(struct bdi_writeback *wb);
bool rust_dontcache_leave(struct bdi_writeback *wb);

/* fs/dontcache_policy.rs */
int rust_dontcache_choose_policy(const char *name);
const char *rust_dontcache_policy_name(void);

/* mm/rust_filemap_flush.h */
int rust_filemap_flush_range_nr(struct address_space *mapping, loff_t first,
				loff_t last, long nr_pages);

/* mm/rust_writeback.c: for the whole system, at any time */
int rust_writeback_set_policy(const char *name);
const char *rust_writeback_policy(void);

/* fs/rust_flusher.h, for tests: what the flusher does with a kick */
long dontcache_test_flush(struct bdi_writeback *wb);

/*
 * The dropbehind @folio of @nr pages became dirty on @wb. The caller holds the
 * lock of @mapping->i_pages, and tags the folio as dirty before it lets go.
 */
static __always_inline bool
rust_account_dontcache_dirtied(struct folio *folio,
			       struct address_space *mapping,
			       struct bdi_writeback *wb, long nr)
{
	if (!rust_writeback_active())
		return false;
	rust_dontcache_dirtied(folio, mapping, wb, nr);
	return true;
}

/* The dropbehind @folio of @nr pages stopped being dirty on @wb. */
static __always_inline bool
rust_account_dontcache_cleaned(struct folio *folio, struct bdi_writeback *wb,
			       long nr)
{
	if (!rust_writeback_active())
		return false;
	rust_dontcache_cleaned(folio, wb, nr);
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
rust_account_dontcache_dirtied(struct folio *folio,
			       struct address_space *mapping,
			       struct bdi_writeback *wb, long nr)
{
	return false;
}

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

#endif /* CONFIG_RUST_WRITEBACK */

#endif /* _LINUX_RUST_DONTCACHE_H */
