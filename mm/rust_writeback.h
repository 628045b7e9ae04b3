/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The writeback core in Rust: whether it is active, and what <linux/fs.h>
 * calls of it. All that need not be there is in <linux/rust_dontcache.h>, for
 * a change of this file compiles almost the whole kernel again.
 *
 * Without CONFIG_RUST_WRITEBACK it is never active, which is a constant.
 */
#ifndef _LINUX_RUST_WRITEBACK_H
#define _LINUX_RUST_WRITEBACK_H

#include <linux/jump_label.h>
#include <linux/types.h>

struct address_space;

#ifdef CONFIG_RUST_WRITEBACK

/* fs/dontcache_kick.rs, exported for file systems that are modules */
void rust_dontcache_kick(struct address_space *mapping);

/* fs/dontcache_policy.rs, exported as well */
void rust_dontcache_policy(struct address_space *mapping, loff_t end,
			   ssize_t count);

#ifdef CONFIG_RUST_WRITEBACK_AB
DECLARE_STATIC_KEY_TRUE(rust_writeback_key);

/* Which core is active: true for Rust, false for C. Fixed at boot. */
static inline bool rust_writeback_active(void)
{
	return static_branch_likely(&rust_writeback_key);
}
#else
static inline bool rust_writeback_active(void)
{
	return true;
}
#endif

DECLARE_STATIC_KEY_FALSE(rust_writeback_policy_key);

/*
 * A DONTCACHE write put @count bytes in front of @end into @mapping. The key
 * is off while the policy is the default, which does not ask where: @end is
 * a pointer so that it is not even read then.
 */
static __always_inline void
rust_dontcache_written(struct address_space *mapping, const loff_t *end,
		       ssize_t count)
{
	if (static_branch_unlikely(&rust_writeback_policy_key))
		rust_dontcache_policy(mapping, *end, count);
	else
		rust_dontcache_kick(mapping);
}

#else /* CONFIG_RUST_WRITEBACK */

static inline bool rust_writeback_active(void)
{
	return false;
}

static inline void
rust_dontcache_written(struct address_space *mapping, const loff_t *end,
		       ssize_t count)
{
}

#endif /* CONFIG_RUST_WRITEBACK */

#endif /* _LINUX_RUST_WRITEBACK_H */
