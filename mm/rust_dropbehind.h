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

/*
 * The write of @iocb begins behind the end of its file, or ends early, and the
 * file system zeroes the rest of a block: a DONTCACHE write does not claim it.
 * There is none for what the kernel writes itself. The caller holds the inode's
 * lock, so nobody else has anything zeroed meanwhile.
 */
static inline const struct kiocb *rust_begin_extend(const struct kiocb *iocb)
{
	if (!rust_writeback_active() || !iocb ||
	    !(iocb->ki_flags & IOCB_DONTCACHE) ||
	    (iocb->ki_flags & IOCB_DIRECT))
		return NULL;
	set_bit(AS_DONTCACHE_EXTEND, &iocb->ki_filp->f_mapping->flags);
	return iocb;
}

/* A synchronous write syncs its own bytes, and would leave no kick for these. */
static inline void rust_end_extend(const struct kiocb *iocb)
{
	struct address_space *mapping;

	if (!iocb)
		return;
	mapping = iocb->ki_filp->f_mapping;
	clear_bit(AS_DONTCACHE_EXTEND, &mapping->flags);
	if (iocb_is_dsync(iocb) &&
	    !static_branch_unlikely(&rust_writeback_policy_key))
		rust_dontcache_kick(mapping);
}

/* Whether what is zeroed in @mapping is that of such a write. */
static inline bool rust_dontcache_extends(struct address_space *mapping)
{
	return test_bit(AS_DONTCACHE_EXTEND, &mapping->flags);
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

static inline const struct kiocb *rust_begin_extend(const struct kiocb *iocb)
{
	return NULL;
}

static inline void rust_end_extend(const struct kiocb *iocb)
{
}

static inline bool rust_dontcache_extends(struct address_space *mapping)
{
	return false;
}

static inline void rust_migrate_dropbehind(struct folio *newfolio,
					   struct folio *folio)
{
}

#endif /* CONFIG_RUST_WRITEBACK */

/* CLASS(rust_dontcache_extend, extend)(iocb): for as long as the scope lasts */
DEFINE_CLASS(rust_dontcache_extend, const struct kiocb *, rust_end_extend(_T),
	     rust_begin_extend(iocb), const struct kiocb *iocb)

#endif /* _LINUX_RUST_DROPBEHIND_H */
