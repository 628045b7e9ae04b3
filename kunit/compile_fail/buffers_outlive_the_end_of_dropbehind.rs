// SPDX-License-Identifier: GPL-2.0
// compile error: E0505

//! The end of dropbehind frees the buffers of a folio.

use kernel::{buffer_head::BufferRing, folio::Folio, writeback::buffer_walk::Ring};

/// The ring would refer to freed buffers.
pub fn misuse(folio: &Folio) -> Option<usize> {
    let guard = folio.try_lock()?;
    // SAFETY: The folio has buffers, for the sake of the example.
    let ring = unsafe { BufferRing::of(&guard) };
    // SAFETY: The context is a task with interrupts on, for the sake of the example.
    unsafe { guard.end_dropbehind() };
    ring.map(|ring| ring.buffers(0..ring.blocks()).count())
}
