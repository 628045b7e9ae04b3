/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by the suites: selects the core for a test. A suite restores the core
 * that it found.
 */
#ifndef _LINUX_RUST_WRITEBACK_KUNIT_H
#define _LINUX_RUST_WRITEBACK_KUNIT_H

#include <linux/rust_writeback.h>

#ifdef CONFIG_RUST_WRITEBACK_AB

enum core { CORE_C, CORE_RUST, NR_CORES };

static inline enum core get_core(void)
{
	return rust_writeback_active() ? CORE_RUST : CORE_C;
}

static inline void set_core(enum core core)
{
	if (core == CORE_RUST)
		static_branch_enable(&rust_writeback_key);
	else
		static_branch_disable(&rust_writeback_key);
}

#else /* CONFIG_RUST_WRITEBACK_AB */

enum core { CORE_RUST, NR_CORES };

static inline enum core get_core(void)
{
	return CORE_RUST;
}

static inline void set_core(enum core core)
{
}

#endif /* CONFIG_RUST_WRITEBACK_AB */

#endif /* _LINUX_RUST_WRITEBACK_KUNIT_H */
