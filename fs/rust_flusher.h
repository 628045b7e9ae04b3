/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The flusher's side of the kick, included by fs-writeback.c alone: struct
 * wb_writeback_work and wb_writeback() are private to it.
 */
#ifdef CONFIG_RUST_WRITEBACK

EXPORT_SYMBOL_GPL(rust_dontcache_kick);
EXPORT_SYMBOL_GPL(rust_dontcache_policy);

static long rust_wb_write_dontcache(struct bdi_writeback *wb, long nr_pages)
{
	struct wb_writeback_work work = {
		.nr_pages	= nr_pages,
		.sync_mode	= WB_SYNC_NONE,
		.range_cyclic	= 1,
		.reason		= WB_REASON_DONTCACHE,
	};

	return wb_writeback(wb, &work);
}

/* The active core's check; wb_do_writeback() below calls it by the C's name. */
static long rust_wb_check_start_dontcache(struct bdi_writeback *wb)
{
	s64 nr_pages;

	if (!rust_writeback_active())
		return wb_check_start_dontcache(wb);
	nr_pages = rust_dontcache_consume(wb);
	if (nr_pages <= 0)
		return 0;
	return rust_wb_write_dontcache(wb, nr_pages);
}

#define wb_check_start_dontcache rust_wb_check_start_dontcache

#if defined(CONFIG_RUST_WRITEBACK_KUNIT_TEST) || defined(CONFIG_RUST_WRITEBACK_MICRO)
long dontcache_test_flush(struct bdi_writeback *wb)
{
	return wb_check_start_dontcache(wb);
}
#endif

#endif /* CONFIG_RUST_WRITEBACK */
