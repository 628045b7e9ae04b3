// SPDX-License-Identifier: GPL-2.0
// compile error: E0308

//! A CPU's ring of folios to drop is filled with interrupts off.

use kernel::{dropbehind::DropRing, sync::rcu};

/// An interrupt could fill the slots after the check.
pub fn misuse() -> bool {
    let section = rcu::read_lock();
    DropRing::has_room_for_bio(&section, 1)
}
