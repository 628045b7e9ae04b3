// SPDX-License-Identifier: GPL-2.0
// compile error: E0277

//! A buffer belongs to the context that has locked its folio.

use kernel::{buffer_head::BufferRing, folio::LockedFolio, writeback::buffer_walk::Ring};

fn elsewhere<T: Send>(_: T) {}

/// Another thread cannot know when the lock is released.
pub fn misuse(folio: &LockedFolio) {
    // SAFETY: The folio has buffers, for the sake of the example.
    for buffer in unsafe { BufferRing::of(folio) }
        .iter()
        .flat_map(|ring| ring.buffers(0..1))
    {
        elsewhere(buffer);
    }
}
