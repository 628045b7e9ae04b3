// SPDX-License-Identifier: GPL-2.0
// compile error: E0308

//! A CPU's ring of folios to drop is filled with interrupts off.

use kernel::{dropbehind::OwnDropRing, percpu::CpuGuard};

/// An interrupt could fill the slots after the check.
pub fn misuse() -> bool {
    let pinned = CpuGuard::new();
    OwnDropRing::this(&pinned).has_room(1)
}
