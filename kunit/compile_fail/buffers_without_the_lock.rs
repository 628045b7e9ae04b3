// SPDX-License-Identifier: GPL-2.0
// compile error: E0308

//! The buffers of a folio are reached under its lock.

use kernel::{buffer_head::BufferRing, folio::Folio};

/// Nobody keeps the buffers of an unlocked folio from being freed.
pub fn misuse(folio: &Folio) -> usize {
    // SAFETY: The folio has buffers, for the sake of the example.
    unsafe { BufferRing::of(folio) }.map_or(0, |ring| ring.blocks())
}
