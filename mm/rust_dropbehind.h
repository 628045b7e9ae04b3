/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Dropbehind folios: who claims them, and what becomes of those that could not
 * be dropped at once. Hooks, as the C that they stand in sees them.
 */
#ifndef _LINUX_RUST_DROPBEHIND_H
#define _LINUX_RUST_DROPBEHIND_H

#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/rust_dontcache.h>

#ifdef CONFIG_RUST_WRITEBACK

/* Takes dropbehind from @folio, and returns all its flags as they were. */
static inline unsigned long folio_fetch_clear_dropbehind(struct folio *folio)
{
	return atomic_long_fetch_andnot(BIT(PG_dropbehind),
					(atomic_long_t *)folio_flags(folio, 0));
}

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

/* mm/dropbehind_later.rs */
void rust_drop_later(struct folio *folio);

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

/*
 * @folio was looked up in @mapping, which takes dropbehind from it unless the
 * lookup was one of DONTCACHE or, other than in C, for a lock alone: who seeks
 * to truncate it does not want to keep it. A folio without dropbehind has its
 * flags read only, other than in C again.
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

/* mm/rust_end_dropbehind.h */
bool rust_is_dropbehind_at(struct address_space *mapping, pgoff_t index);

/*
 * What @mapping ends in at @pos is to be zeroed. True if that is in a dropbehind
 * folio, which is to stay one: who zeroes does not want to keep it.
 */
static inline bool rust_tail_is_dropbehind(struct address_space *mapping,
					   loff_t pos)
{
	return rust_writeback_active() &&
	       rust_is_dropbehind_at(mapping, pos >> PAGE_SHIFT);
}

/* What the file of @iocb ends in, while a write behind that has it zeroed. */
struct rust_tail {
	const struct kiocb *iocb;
	struct folio *folio;
};

/*
 * The write of @iocb begins behind the end of its file, whose last block is
 * zeroed for that. If it is one of DONTCACHE and the page cache has no folio
 * there, one that is dropbehind comes now: an empty one, to be read if need be.
 */
static inline struct rust_tail rust_begin_tail(const struct kiocb *iocb)
{
	struct rust_tail tail = { .iocb = iocb };
	struct address_space *mapping = iocb->ki_filp->f_mapping;
	loff_t size = i_size_read(mapping->host);

	if (!rust_writeback_active() || !(iocb->ki_flags & IOCB_DONTCACHE) ||
	    (iocb->ki_flags & IOCB_DIRECT) || IS_DAX(mapping->host) ||
	    !(size & (i_blocksize(mapping->host) - 1)))
		return tail;
	tail.folio = __filemap_get_folio(mapping, size >> PAGE_SHIFT,
					 FGP_LOCK | FGP_CREAT | FGP_DONTCACHE,
					 mapping_gfp_constraint(mapping, ~__GFP_FS));
	if (IS_ERR(tail.folio))
		tail.folio = NULL;
	else
		folio_unlock(tail.folio);
	return tail;
}

/*
 * What was not zeroed leaves within a second, as an end of a file does that may
 * be appended to. What was is kicked here: the write may be synchronous, and sync
 * its own bytes alone, or fail.
 */
static inline void rust_end_tail(struct rust_tail tail)
{
	bool zeroed;

	if (!tail.folio)
		return;
	zeroed = folio_is_dontcache_dirty(tail.folio);
	folio_end_dropbehind(tail.folio);
	folio_put(tail.folio);
	if (zeroed && !static_branch_unlikely(&rust_writeback_policy_key))
		rust_dontcache_kick(tail.iocb->ki_filp->f_mapping);
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

static inline void rust_drop_if_left(struct folio *folio)
{
}

static inline bool rust_filemap_claim(struct folio *folio,
				      struct address_space *mapping,
				      fgf_t fgp_flags)
{
	return false;
}

static inline bool rust_tail_is_dropbehind(struct address_space *mapping,
					   loff_t pos)
{
	return false;
}

struct rust_tail {
};

static inline struct rust_tail rust_begin_tail(const struct kiocb *iocb)
{
	return (struct rust_tail) { };
}

static inline void rust_end_tail(struct rust_tail tail)
{
}

static inline void rust_migrate_dropbehind(struct folio *newfolio,
					   struct folio *folio)
{
}

#endif /* CONFIG_RUST_WRITEBACK */

/* CLASS(rust_tail, tail)(iocb): for as long as the scope lasts */
DEFINE_CLASS(rust_tail, struct rust_tail, rust_end_tail(_T),
	     rust_begin_tail(iocb), const struct kiocb *iocb)

#endif /* _LINUX_RUST_DROPBEHIND_H */
