// SPDX-License-Identifier: GPL-2.0
// compile error: E0382

//! `into_ref()` ends the section.

use kernel::fs::Inode;

/// The inode may have another wb after the section.
pub fn misuse(inode: &Inode) -> bool {
    let section = inode.wb_section();
    let _wb = section.into_ref();
    section.wb().is_some()
}
