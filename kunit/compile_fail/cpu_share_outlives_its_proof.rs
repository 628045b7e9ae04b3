// SPDX-License-Identifier: GPL-2.0
// compile error: E0515

//! A CPU's share is one's own for as long as the context stays on that CPU.

use kernel::{bio_batch::BioBatch, percpu::CpuPinned};

/// The context may move when the guard is gone.
pub fn misuse() -> &'static BioBatch {
    let pinned = CpuPinned::new();
    BioBatch::per_cpu().this(&pinned)
}
