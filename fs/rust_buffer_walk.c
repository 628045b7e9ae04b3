// SPDX-License-Identifier: GPL-2.0
/*
 * Exports the buffer walk to file systems in modules.
 */
#include <linux/export.h>
#include <linux/rust_buffer_walk.h>

EXPORT_SYMBOL_GPL(rust_write_begin);
