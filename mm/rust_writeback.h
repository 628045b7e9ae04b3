/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The writeback core in Rust: its hooks, as the C that they stand in sees them.
 *
 * A hook returns true when the Rust core has done the work, and the C beside
 * it is skipped. Without CONFIG_RUST_WRITEBACK all of them are constant false.
 */
#ifndef _LINUX_RUST_WRITEBACK_H
#define _LINUX_RUST_WRITEBACK_H

#include <linux/jump_label.h>
#include <linux/types.h>

struct address_space;
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

/* fs/dontcache_kick.rs, exported for file systems that are modules */
void rust_dontcache_kick(struct address_space *mapping);
s64 rust_dontcache_consume(struct bdi_writeback *wb);
bool rust_dontcache_leave(struct bdi_writeback *wb);

/* fs/dontcache_policy.rs, exported as well where file systems need it */
void rust_dontcache_policy(struct address_space *mapping, loff_t end,
			   ssize_t count);
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

#ifdef CONFIG_RUST_WRITEBACK_AB
DECLARE_STATIC_KEY_TRUE(rust_writeback_key);

/* Which core is active: true for Rust, false for C. Fixed at boot. */
static inline bool rust_writeback_active(void)
{
	return static_branch_likely(&rust_writeback_key);
}
#else
static inline bool rust_writeback_active(void)
{
	return true;
}
#endif

DECLARE_STATIC_KEY_FALSE(rust_writeback_policy_key);

/*
 * A DONTCACHE write put @count bytes in front of @end into @mapping. The key
 * is off while the policy is the default, which does not ask where: @end is
 * a pointer so that it is not even read then.
 */
static __always_inline void
rust_dontcache_written(struct address_space *mapping, const loff_t *end,
		       ssize_t count)
{
	if (static_branch_unlikely(&rust_writeback_policy_key))
		rust_dontcache_policy(mapping, *end, count);
	else
		rust_dontcache_kick(mapping);
}

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

static inline bool rust_writeback_active(void)
{
	return false;
}

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

static inline void
rust_dontcache_written(struct address_space *mapping, const loff_t *end,
		       ssize_t count)
{
}

#endif /* CONFIG_RUST_WRITEBACK */

#endif /* _LINUX_RUST_WRITEBACK_H */
