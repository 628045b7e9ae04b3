/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Interface to C for dropbehind folios. They become dirty, are claimed (a lookup
 * clears dropbehind), or are dropped after their writeback.
 */
#ifndef _LINUX_RUST_DROPBEHIND_H
#define _LINUX_RUST_DROPBEHIND_H

#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/percpu-defs.h>
#include <linux/rust_dontcache.h>
#include <linux/sizes.h>
#include <linux/workqueue.h>

/*
 * Folios whose writeback has ended on a CPU wait here until a worker drops them.
 * A kfifo would not do: a work item that finds it empty could miss the next
 * folio. Here both sides change the slot atomically.
 */
enum {
	DROPBEHIND_SLOTS	= SZ_2M / PAGE_SIZE,
};

struct dropbehind_ring {
	/* for rust/kernel/dropbehind.rs alone */
	struct folio		*slots[DROPBEHIND_SLOTS];
	unsigned long		nr_put;

	/* as above; only the work item changes it */
	unsigned long		nr_taken ____cacheline_aligned_in_smp;
	struct delayed_work	work;
};

/* mm/dropbehind_ring.c, for rust/kernel/dropbehind.rs */
DECLARE_PER_CPU_ALIGNED(struct dropbehind_ring, dropbehind_rings);
void dropbehind_begin(struct dropbehind_ring *ring, unsigned int ms, bool anew);

/* mm/rust_end_dropbehind.h, for rust/kernel/dropbehind.rs */
void dropbehind_lock(struct address_space *mapping);
void dropbehind_remove(struct address_space *mapping,
		       struct folio *const *folios, unsigned int nr);
void dropbehind_unlock(struct address_space *mapping);

/* mm/dropbehind.rs */
void dropbehind_end(struct folio *folio);
void dropbehind_drop_locked(struct folio *folio);
void dropbehind_work(struct dropbehind_ring *ring);

/* True if @folio is dirty and its writeback will include the caller's data. */
static inline bool folio_stays_dirty(const struct folio *folio)
{
	if (!folio_test_dirty(folio))
		return false;
	/*
	 * Order the caller's data before the test, as in mark_buffer_dirty().
	 */
	smp_mb();
	return folio_test_dirty(folio);
}

/* Test both flags in one read. */
static inline bool folio_is_dontcache_dirty(const struct folio *folio)
{
	const unsigned long both = BIT(PG_dirty) | BIT(PG_dropbehind);

	return (READ_ONCE(*const_folio_flags(folio, 0)) & both) == both;
}

/*
 * True if @folio must be made dirty under the lock of its page cache. A folio
 * that is not dropbehind never becomes dropbehind.
 */
static inline bool rust_dirties_dropbehind(const struct folio *folio)
{
	return rust_writeback_active() && folio_test_dropbehind(folio);
}

/* mm/rust_dirty_folio.h: page cache if the dropbehind @folio was clean */
struct address_space *rust_dirty_buffers_folio(struct folio *folio);

/*
 * A lookup found @folio in @mapping. Clear dropbehind unless this is a
 * DONTCACHE lookup or, unlike in C, a lookup for the lock alone: truncation
 * does not keep the folio. Unlike in C, a folio without dropbehind is not
 * written to.
 */
static __always_inline bool
rust_filemap_claim(struct folio *folio, struct address_space *mapping,
		   fgf_t fgp_flags)
{
	if (!rust_writeback_active())
		return false;
	if (folio_test_dropbehind(folio) && !(fgp_flags & FGP_DONTCACHE) &&
	    fgp_flags != FGP_LOCK)
		rust_dontcache_claim(folio, mapping);
	return true;
}

/* @folio moves to @newfolio. No other context holds a reference on either. */
static inline void rust_migrate_dropbehind(struct folio *newfolio,
					   struct folio *folio)
{
	if (rust_writeback_active() && folio_test_dropbehind(folio))
		folio_set_dropbehind(newfolio);
}

/*
 * Whether @mapping has a dropbehind folio at @pos. To zero the end of a block is
 * not to use the folio: an ordinary lookup would claim it.
 */
static inline bool rust_zeroes_dropbehind(struct address_space *mapping,
					  loff_t pos)
{
	struct folio *folio;
	bool dropbehind;

	if (!rust_writeback_active())
		return false;
	folio = __filemap_get_folio(mapping, pos >> PAGE_SHIFT, FGP_DONTCACHE, 0);
	if (IS_ERR(folio))
		return false;
	dropbehind = folio_test_dropbehind(folio);
	folio_put(folio);
	return dropbehind;
}

#endif /* _LINUX_RUST_DROPBEHIND_H */
