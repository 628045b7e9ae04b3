// SPDX-License-Identifier: GPL-2.0
// compile error: E0515

//! The lock of a folio keeps its buffers.

use kernel::{
    buffer_head::{BufferHead, BufferRing},
    folio::Folio,
    writeback::buffer_walk::Ring,
};

/// The buffer could be freed while the reference exists.
pub fn misuse(folio: &Folio) -> Option<&BufferHead> {
    let guard = folio.try_lock()?;
    // SAFETY: The folio has buffers, for the sake of the example.
    unsafe { BufferRing::of(&guard) }?.buffers(0..1).next()
}
