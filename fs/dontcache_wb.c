// SPDX-License-Identifier: GPL-2.0
/*
 * Storage in a wb for the rounds of the Rust core.
 */
#include <linux/backing-dev-defs.h>
#include <linux/rust_writeback.h>

void dontcache_wb_init(struct bdi_writeback *wb)
{
	INIT_LIST_HEAD(&wb->b_dontcache);
	dontcache_init(wb);
}

/* @wb has no inodes left: a counted page is a bug in the accounting. */
void dontcache_wb_exit(struct bdi_writeback *wb)
{
	WARN_ONCE(percpu_counter_sum(&wb->stat[WB_DONTCACHE_DIRTY]),
		  "dirty dropbehind pages are counted, but there are none\n");
}

bool wb_has_dontcache(struct bdi_writeback *wb)
{
	return !list_empty(&wb->b_dontcache);
}

size_t wb_nr_dontcache(struct bdi_writeback *wb)
{
	return list_count_nodes(&wb->b_dontcache);
}
