// SPDX-License-Identifier: GPL-2.0
// compile error: E0277

//! A section is an RCU read-side critical section of one thread.

use kernel::fs::Inode;

fn elsewhere<T: Send>(_: T) {}

/// The other thread would end a critical section that it never began.
pub fn misuse(inode: &Inode) {
    elsewhere(inode.wb_section());
}
