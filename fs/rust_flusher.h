/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The flusher's side of the kick, included by fs-writeback.c alone: struct
 * wb_writeback_work, wb_writeback() and wb_wakeup() are private to it.
 */
#ifdef CONFIG_RUST_WRITEBACK

void rust_wb_wakeup(struct bdi_writeback *wb)
{
	wb_wakeup(wb);
}

static long rust_wb_check_start_dontcache(struct bdi_writeback *wb)
{
	struct wb_writeback_work work = {
		.sync_mode	= WB_SYNC_NONE,
		.range_cyclic	= 1,
		.reason		= WB_REASON_DONTCACHE,
	};
	s64 nr_pages = rust_dontcache_consume(wb);

	if (nr_pages <= 0)
		return 0;
	work.nr_pages = nr_pages;
	return wb_writeback(wb, &work);
}

#if defined(CONFIG_RUST_WRITEBACK_KUNIT_TEST) || defined(CONFIG_RUST_WRITEBACK_MICRO)
static long wb_check_start_dontcache(struct bdi_writeback *wb);

long dontcache_test_flush(struct bdi_writeback *wb)
{
	return wb_check_start_dontcache(wb);
}
#endif

#else

static inline long rust_wb_check_start_dontcache(struct bdi_writeback *wb)
{
	return 0;
}

#endif
