/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What <linux/fs.h> calls after a DONTCACHE write. A change of this file
 * compiles almost the whole kernel again: what need not be here is in
 * <linux/rust_round.h>.
 */
#ifndef _LINUX_RUST_KICK_H
#define _LINUX_RUST_KICK_H

#include <linux/jump_label.h>
#include <linux/rust_writeback.h>

struct address_space;

#ifdef CONFIG_RUST_WRITEBACK

/* fs/dontcache_kick.rs, exported for file systems that are modules */
void rust_dontcache_kick(struct address_space *mapping);

/* fs/dontcache_policy.rs, exported as well */
void rust_dontcache_policy(struct address_space *mapping, loff_t end,
			   ssize_t count);

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

static inline void
rust_dontcache_written(struct address_space *mapping, const loff_t *end,
		       ssize_t count)
{
}

#endif /* CONFIG_RUST_WRITEBACK */

#endif /* _LINUX_RUST_KICK_H */
