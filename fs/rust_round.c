// SPDX-License-Identifier: GPL-2.0
/*
 * Storage in a wb for the rounds of the Rust core.
 */
#include <linux/backing-dev-defs.h>
#include <linux/rust_round.h>

void rust_wb_init(struct bdi_writeback *wb)
{
	INIT_LIST_HEAD(&wb->b_dontcache);
	rust_pace_init(wb);
}

/* @wb has no inodes left: a counted page is a bug in the accounting. */
void rust_wb_exit(struct bdi_writeback *wb)
{
	WARN_ONCE(rust_writeback_active() &&
		  percpu_counter_sum(&wb->stat[WB_DONTCACHE_DIRTY]),
		  "dirty dropbehind pages are counted, but there are none\n");
}

bool rust_wb_has_dontcache(struct bdi_writeback *wb)
{
	return !list_empty(&wb->b_dontcache);
}

size_t rust_wb_nr_dontcache(struct bdi_writeback *wb)
{
	return list_count_nodes(&wb->b_dontcache);
}
