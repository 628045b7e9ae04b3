// SPDX-License-Identifier: GPL-2.0
// compile error: E0308

//! A CPU has a share if it is possible, which not every number below their bound is.

use kernel::{bio_batch::BioBatch, cpu::CpuId};

/// There may be nothing at the address.
pub fn misuse(cpu: CpuId) -> &'static BioBatch {
    BioBatch::per_cpu().of(cpu)
}
