// SPDX-License-Identifier: GPL-2.0
// compile error: E0515

//! A CPU's share is one's own for as long as the context stays on that CPU.

use kernel::{bio_batch::BioBatch, percpu::CpuGuard};

/// The context may move when the guard is gone.
pub fn misuse() -> &'static BioBatch {
    let pinned = CpuGuard::new();
    BioBatch::per_cpu().this(&pinned)
}
