// SPDX-License-Identifier: GPL-2.0
// compile error: E0515

//! A wb of a section is gone when the section ends.

use kernel::{backing_dev::BdiWriteback, fs::Inode};

/// The borrow would outlive the section that keeps the wb.
pub fn misuse(inode: &Inode) -> Option<&BdiWriteback> {
    let section = inode.wb_section();
    section.wb()
}
