// SPDX-License-Identifier: GPL-2.0
// compile error: E0308

//! A queue has a share of its own for each CPU that is possible, and none for others.

use kernel::{cpu::CpuId, cpu_work::CpuWork, workqueue::Queue};

/// There may be nothing at the address.
pub fn misuse(work: &CpuWork, queue: &Queue, cpu: CpuId) -> bool {
    work.queue_on(cpu, queue)
}
