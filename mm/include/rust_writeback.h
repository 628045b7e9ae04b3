/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Reports whether the Rust writeback core is active. Without
 * CONFIG_RUST_WRITEBACK this is a constant false.
 */
#ifndef _LINUX_RUST_WRITEBACK_H
#define _LINUX_RUST_WRITEBACK_H

#include <linux/types.h>

#ifdef CONFIG_RUST_WRITEBACK_AB

#include <linux/jump_label.h>

DECLARE_STATIC_KEY_TRUE(rust_writeback_key);

/* Which core is active: true for Rust, false for C. Fixed at boot. */
static inline bool rust_writeback_active(void)
{
	return static_branch_likely(&rust_writeback_key);
}

#else /* CONFIG_RUST_WRITEBACK_AB */

static inline bool rust_writeback_active(void)
{
	return IS_ENABLED(CONFIG_RUST_WRITEBACK);
}

#endif /* CONFIG_RUST_WRITEBACK_AB */

#endif /* _LINUX_RUST_WRITEBACK_H */
