// SPDX-License-Identifier: GPL-2.0
// compile error: E0505

//! A CPU's batch is used while interrupts are off.

use kernel::{bio_batch::OwnBatch, percpu::InterruptsSaved};

/// Interrupts are on again, and add.
pub fn misuse() {
    let off = InterruptsSaved::new();
    let batch = OwnBatch::this(&off);
    drop(off);
    let _ = batch.take();
}
