// SPDX-License-Identifier: GPL-2.0
// compile error: E0599

//! Waking the flusher enables interrupts, which a section may have off.

use kernel::fs::Inode;

/// Only the reference that outlives the section can wake.
pub fn misuse(inode: &Inode) {
    if let Some(wb) = inode.wb_section().wb() {
        wb.wakeup();
    }
}
