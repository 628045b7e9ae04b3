/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The background threshold, for the pace of rounds in rust/kernel/wb_pace.rs.
 * Only page-writeback.c includes this file.
 */
#ifdef CONFIG_RUST_WRITEBACK

/*
 * The number of dirty pages at which background writeback of @wb begins: of the
 * system, or of its memory cgroup if that is lower.
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
