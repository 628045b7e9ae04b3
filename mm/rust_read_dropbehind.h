/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The end of a read, included by filemap.c alone behind the C's.
 */
#ifdef CONFIG_RUST_WRITEBACK

/*
 * A DONTCACHE read drops what it has brought in. An ordinary one keeps what it
 * finds, other than in C, and claims it.
 */
static void rust_filemap_end_dropbehind_read(struct kiocb *iocb,
					     struct folio *folio)
{
	if (!folio_test_dropbehind(folio))
		return;
	if (rust_writeback_active() && !(iocb->ki_flags & IOCB_DONTCACHE))
		rust_dontcache_claim(folio, iocb->ki_filp->f_mapping);
	else
		filemap_end_dropbehind_read(folio);
}

#define filemap_end_dropbehind_read(folio) \
	rust_filemap_end_dropbehind_read(iocb, folio)

#endif /* CONFIG_RUST_WRITEBACK */
