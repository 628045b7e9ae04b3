// SPDX-License-Identifier: GPL-2.0
// compile error: E0599

//! Only the flusher writes queued inodes.

use kernel::{flusher::ListsGuard, fs::AddressSpace, writeback::round::Lists as _};

pub fn write(mapping: &AddressSpace) {
    if let Some(mut lists) = ListsGuard::of(mapping) {
        lists.write(1, 1);
    }
}
