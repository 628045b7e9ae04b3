// SPDX-License-Identifier: GPL-2.0
// compile error: E0624

//! Waking the flusher takes a lock that must not nest in a section.

use kernel::fs::Inode;

/// Only the counted reference can wake the flusher.
pub fn misuse(inode: &Inode) {
    if let Some(wb) = inode.wb_section().wb() {
        wb.run_within(0);
    }
}
