// SPDX-License-Identifier: GPL-2.0
// compile error: E0277

//! A CPU's queue of folios is filled with interrupts off.

use kernel::{drop_queue::OwnDropQueue, folio::Folio, percpu::CpuGuard};

/// An interrupt could put a folio into the place that this has found.
pub fn misuse(folio: &Folio) {
    let pinned = CpuGuard::new();
    OwnDropQueue::this(&pinned).queue(folio);
}
