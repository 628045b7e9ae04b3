// SPDX-License-Identifier: GPL-2.0
// compile error: E0515

//! A context owns a CPU's share only while it stays on that CPU.

use kernel::{dropbehind::DropRing, interrupt::local_interrupt_disable};

/// The context may move once interrupts are on again.
pub fn misuse() -> &'static DropRing {
    let off = local_interrupt_disable();
    DropRing::of_this_cpu(&off)
}
