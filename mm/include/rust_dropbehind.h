/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Dropbehind folios: who makes them dirty, and who claims them. Hooks, as the C
 * that they stand in sees them.
 */
#ifndef _LINUX_RUST_DROPBEHIND_H
#define _LINUX_RUST_DROPBEHIND_H

#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/rust_dontcache.h>

/* Whether @folio is dirty, and what the caller has written is written back with it. */
static inline bool folio_stays_dirty(const struct folio *folio)
{
	if (!folio_test_dirty(folio))
		return false;
	/* What is written comes before, as in mark_buffer_dirty(). */
	smp_mb();
	return folio_test_dirty(folio);
}

#ifdef CONFIG_RUST_WRITEBACK

/* Both flags in one look. */
static inline bool folio_is_dontcache_dirty(const struct folio *folio)
{
	const unsigned long both = BIT(PG_dirty) | BIT(PG_dropbehind);

	return (READ_ONCE(*const_folio_flags(folio, 0)) & both) == both;
}

/*
 * Whether @folio has to be made dirty under the lock of its page cache. One that
 * is not dropbehind never becomes it.
 */
static inline bool rust_dirties_dropbehind(const struct folio *folio)
{
	return rust_writeback_active() && folio_test_dropbehind(folio);
}

/* mm/rust_dirty_folio.h: its page cache if the dropbehind @folio was not dirty */
struct address_space *rust_dirty_buffers_folio(struct folio *folio);

/*
 * @folio was looked up in @mapping, which takes dropbehind from it unless the
 * lookup was one of DONTCACHE or, unlike in C, for a lock alone: who seeks to
 * truncate it does not want to keep it. A folio without dropbehind has its flags
 * read only, unlike in C again.
 */
static __always_inline bool
rust_filemap_claim(struct folio *folio, struct address_space *mapping,
		   fgf_t fgp_flags)
{
	if (!rust_writeback_active())
		return false;
	if (!(fgp_flags & FGP_DONTCACHE) && folio_test_dropbehind(folio) &&
	    fgp_flags != FGP_LOCK)
		rust_dontcache_claim(folio, mapping);
	return true;
}

/* @folio moves to @newfolio. Nobody else has a reference on either. */
static inline void rust_migrate_dropbehind(struct folio *newfolio,
					   struct folio *folio)
{
	if (rust_writeback_active() && folio_test_dropbehind(folio))
		folio_set_dropbehind(newfolio);
}

#else /* CONFIG_RUST_WRITEBACK */

static inline bool rust_dirties_dropbehind(const struct folio *folio)
{
	return false;
}

static inline struct address_space *
rust_dirty_buffers_folio(struct folio *folio)
{
	return NULL;
}

static inline bool rust_filemap_claim(struct folio *folio,
				      struct address_space *mapping,
				      fgf_t fgp_flags)
{
	return false;
}

static inline void rust_migrate_dropbehind(struct folio *newfolio,
					   struct folio *folio)
{
}

#endif /* CONFIG_RUST_WRITEBACK */

#endif /* _LINUX_RUST_DROPBEHIND_H */
