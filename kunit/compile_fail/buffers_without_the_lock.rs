// SPDX-License-Identifier: GPL-2.0
// compile error: E0308

//! Access to the buffers of a folio needs its lock.

use kernel::{buffer_head::BufferRing, folio::Folio};

/// The buffers of an unlocked folio could be freed.
pub fn misuse(folio: &Folio) -> usize {
    // SAFETY: The folio has buffers, for the sake of the example.
    unsafe { BufferRing::of(folio) }.map_or(0, |ring| ring.blocks())
}
