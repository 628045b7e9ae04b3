// SPDX-License-Identifier: GPL-2.0
// compile error: E0277

//! A CPU's batch is used with interrupts off.

use kernel::{bio::CompletedBio, bio_batch::OwnBatch, percpu::CpuGuard};

/// An interrupt could add to the list that this adds to.
pub fn misuse(bio: CompletedBio) {
    let pinned = CpuGuard::new();
    OwnBatch::this(&pinned).add(bio);
}
