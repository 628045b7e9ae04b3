// SPDX-License-Identifier: GPL-2.0
// compile error: E0277

//! A CPU's drop queue is filled with interrupts off.

use kernel::{drop_queue::OwnDropQueue, folio::Folio, percpu::CpuGuard};

/// An interrupt could fill the slot that this call has found.
pub fn misuse(folio: &Folio) {
    let pinned = CpuGuard::new();
    OwnDropQueue::this(&pinned).queue(folio);
}
