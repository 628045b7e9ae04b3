// SPDX-License-Identifier: GPL-2.0
/*
 * The Rust core's rounds, as far as they need C: a wb's storage for them, and
 * what is done after a DONTCACHE write.
 */
#include <linux/backing-dev-defs.h>
#include <linux/export.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/rust_round.h>
#include <linux/sysfs.h>

#undef MODULE_PARAM_PREFIX
#define MODULE_PARAM_PREFIX "rust_writeback."

DEFINE_STATIC_KEY_FALSE(rust_writeback_policy_key);
EXPORT_SYMBOL_GPL(rust_writeback_policy_key);
EXPORT_SYMBOL_GPL(rust_dontcache_kick);
EXPORT_SYMBOL_GPL(rust_dontcache_policy);

static DEFINE_MUTEX(policy_lock);

/*
 * Writers may see the key and the policy in any order: the one behind the key
 * does what the default does, too.
 */
int rust_writeback_set_policy(const char *name)
{
	int other;

	guard(mutex)(&policy_lock);
	other = rust_dontcache_choose_policy(name);
	if (other < 0)
		return other;
	if (other)
		static_branch_enable(&rust_writeback_policy_key);
	else
		static_branch_disable(&rust_writeback_policy_key);
	return 0;
}

/* The C core has no choice: it kicks. */
const char *rust_writeback_policy(void)
{
	return rust_writeback_active() ? rust_dontcache_policy_name() : "kick";
}

void rust_wb_init(struct bdi_writeback *wb)
{
	INIT_LIST_HEAD(&wb->b_dontcache);
	rust_pace_init(wb);
}

/* All its inodes have gone or moved: a page that is counted is a bug of ours. */
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

static int policy_set(const char *val, const struct kernel_param *kp)
{
	return val ? rust_writeback_set_policy(val) : -EINVAL;
}

static int policy_get(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%s\n", rust_writeback_policy());
}

static const struct kernel_param_ops policy_ops = {
	.set = policy_set,
	.get = policy_get,
};

module_param_cb(policy, &policy_ops, NULL, 0444);
MODULE_PARM_DESC(policy, "After a DONTCACHE write: adaptive (default), kick, inline, rate-limited or none");
