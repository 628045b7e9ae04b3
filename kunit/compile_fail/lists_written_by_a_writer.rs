// SPDX-License-Identifier: GPL-2.0
// compile error: E0599

//! Only the flusher writes queued inodes.

use kernel::{flusher::ListsGuard, fs::Inode, writeback::round::Lists as _};

pub fn write(inode: &Inode) {
    if let Some(mut lists) = ListsGuard::of_inode(inode) {
        lists.write(1);
    }
}
