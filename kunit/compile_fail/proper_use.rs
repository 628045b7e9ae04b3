// SPDX-License-Identifier: GPL-2.0
// compile error: none

//! The control: what the others do wrong, done right.

use kernel::{folio::Folio, fs::Inode};

/// Marks under the lock, looks inside the section, wakes after it.
pub fn proper(folio: &Folio, inode: &Inode) {
    folio.lock().set_dropbehind();
    let section = inode.wb_section();
    if section.wb().is_none() {
        return;
    }
    if let Some(wb) = section.into_ref() {
        wb.wakeup();
    }
}
