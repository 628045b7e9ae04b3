/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What tests need of the flusher, with either core. Only fs-writeback.c includes
 * this file.
 */
#ifdef CONFIG_RUST_WRITEBACK_AB

static long wb_check_start_dontcache(struct bdi_writeback *wb);

long dontcache_test_flush(struct bdi_writeback *wb)
{
	return wb_check_start_dontcache(wb);
}

/* True while a test keeps pages dirty: then no round is requested. */
static inline bool dontcache_holds_kicks(void)
{
	return static_branch_unlikely(&dontcache_hold_key);
}

#else

static inline bool dontcache_holds_kicks(void)
{
	return false;
}

#endif
