// SPDX-License-Identifier: GPL-2.0
// compile error: E0515

//! An inode keeps its wb only while its page cache is locked.

use kernel::{backing_dev::BdiWriteback, fs::AddressSpace};

/// The borrow would outlive the lock.
pub fn misuse(mapping: &AddressSpace) -> Option<&BdiWriteback> {
    let pages = mapping.lock_pages();
    pages.wb()
}
