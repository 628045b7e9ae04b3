// SPDX-License-Identifier: GPL-2.0
// compile error: E0499

//! The flusher cannot lock its lists twice.

use kernel::{flusher::Flusher, writeback::round::Flusher as _};

pub fn twice(flusher: &mut Flusher<'_>) {
    let once = flusher.lock_lists();
    let again = flusher.lock_lists();
    drop(once);
    drop(again);
}
