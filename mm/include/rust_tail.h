/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The end of a file, zeroed because a write begins behind it: hooks, as the file
 * systems that they stand in see them.
 */
#ifndef _LINUX_RUST_TAIL_H
#define _LINUX_RUST_TAIL_H

#include <linux/cleanup.h>
#include <linux/fs.h>
#include <linux/pagemap.h>
#include <linux/rust_dropbehind.h>
#include <linux/rust_kick.h>

#ifdef CONFIG_RUST_WRITEBACK

/* mm/rust_tail.c */
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

#else /* CONFIG_RUST_WRITEBACK */

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

#endif /* CONFIG_RUST_WRITEBACK */

/* CLASS(rust_tail, tail)(iocb): for as long as the scope lasts */
DEFINE_CLASS(rust_tail, struct rust_tail, rust_end_tail(_T),
	     rust_begin_tail(iocb), const struct kiocb *iocb)

#endif /* _LINUX_RUST_TAIL_H */
