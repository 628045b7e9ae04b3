/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The background limit, included by page-writeback.c alone: for the pace of the
 * rounds of rust/kernel/wb_pace.rs.
 */
#ifdef CONFIG_RUST_WRITEBACK

/*
 * How many pages may be dirty in the domains of @wb until background writeback
 * begins: in the system, or in its memory cgroup if that allows less.
 */
unsigned long rust_wb_background(struct bdi_writeback *wb)
{
	struct dirty_throttle_control gdtc = { GDTC_INIT(wb) };
	struct dirty_throttle_control mdtc = { MDTC_INIT(wb, &gdtc) };

	domain_dirty_avail(&gdtc, false);
	domain_dirty_limits(&gdtc);
	if (!mdtc_valid(&mdtc))
		return gdtc.bg_thresh;

	domain_dirty_avail(&mdtc, false);
	domain_dirty_limits(&mdtc);
	return min(gdtc.bg_thresh, mdtc.bg_thresh);
}

#endif /* CONFIG_RUST_WRITEBACK */
