// SPDX-License-Identifier: GPL-2.0
// compile error: E0624

//! Waking the flusher takes a lock, which is not to nest in what a section holds.

use kernel::fs::Inode;

/// Only the reference that outlives the section can wake.
pub fn misuse(inode: &Inode) {
    if let Some(wb) = inode.wb_section().wb() {
        wb.run_within(0);
    }
}
