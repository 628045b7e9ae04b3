// SPDX-License-Identifier: GPL-2.0
/*
 * Selects the active writeback core, Rust or C, at boot.
 */
#include <linux/export.h>
#include <linux/moduleparam.h>
#include <linux/rust_writeback.h>
#include <linux/string.h>
#include <linux/sysfs.h>

#undef MODULE_PARAM_PREFIX
#define MODULE_PARAM_PREFIX "rust_writeback."

DEFINE_STATIC_KEY_TRUE(rust_writeback_key);
EXPORT_SYMBOL_GPL(rust_writeback_key);

/* Set before any file system is mounted. The parameter is read-only later. */
static int core_set(const char *val, const struct kernel_param *kp)
{
	if (!val)
		return -EINVAL;
	if (!strcmp(val, "rust"))
		static_branch_enable(&rust_writeback_key);
	else if (!strcmp(val, "c"))
		static_branch_disable(&rust_writeback_key);
	else
		return -EINVAL;
	return 0;
}

static int core_get(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%s\n", rust_writeback_active() ? "rust" : "c");
}

static const struct kernel_param_ops core_ops = {
	.set = core_set,
	.get = core_get,
};

module_param_cb(core, &core_ops, NULL, 0444);
MODULE_PARM_DESC(core, "Writeback core: rust (default) or c");
