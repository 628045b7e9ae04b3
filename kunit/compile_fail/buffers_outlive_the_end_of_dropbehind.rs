// SPDX-License-Identifier: GPL-2.0
// compile error: E0505

//! The end of dropbehind frees the buffers of a folio.

use kernel::{buffer_head::BufferRing, folio::Folio};

/// The ring would refer to freed buffers.
pub fn misuse(folio: &Folio) -> usize {
    let guard = folio.lock();
    // SAFETY: The folio has buffers, for the sake of the example.
    let ring = unsafe { BufferRing::of(&guard) };
    guard.end_dropbehind();
    ring.map_or(0, |ring| ring.cursor(0..ring.blocks()).count())
}
