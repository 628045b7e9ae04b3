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

struct list_head *wb_dontcache_list(struct bdi_writeback *wb)
{
	return &wb->b_dontcache;
}

long wb_dontcache_portion(const struct bdi_writeback *wb)
{
	return wb->dontcache_portion;
}
