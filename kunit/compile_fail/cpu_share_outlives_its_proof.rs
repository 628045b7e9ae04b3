// SPDX-License-Identifier: GPL-2.0
// compile error: E0515

//! A context owns a CPU's share only while it stays on that CPU.

use kernel::{bio::BioTask, percpu::CpuGuard};

/// The context may move after the guard is dropped.
pub fn misuse() -> &'static BioTask {
    let pinned = CpuGuard::new();
    BioTask::per_cpu().this(&pinned)
}
