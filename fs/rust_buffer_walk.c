// SPDX-License-Identifier: GPL-2.0
/*
 * The buffer walk for file systems that are modules.
 */
#include <linux/export.h>
#include <linux/rust_buffer_walk.h>

EXPORT_SYMBOL_GPL(rust_write_begin);
