// SPDX-License-Identifier: GPL-2.0
// compile error: E0505

//! A CPU's batch is used while interrupts are off.

use kernel::{bio_batch::OwnBatch, interrupts_off::InterruptsSaved};

/// Interrupts are on again, and add.
pub fn misuse() {
    // SAFETY: The only guard, and no NMI's.
    let off = unsafe { InterruptsSaved::new() };
    let batch = OwnBatch::this(&off);
    drop(off);
    let _ = batch.take();
}
