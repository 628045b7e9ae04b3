// SPDX-License-Identifier: GPL-2.0
// compile error: E0515

//! A section keeps its wb only until it ends.

use kernel::{backing_dev::BdiWriteback, fs::Inode};

/// The borrow would outlive the section.
pub fn misuse(inode: &Inode) -> Option<&BdiWriteback> {
    let section = inode.wb_section();
    section.wb()
}
