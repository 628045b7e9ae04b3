// SPDX-License-Identifier: GPL-2.0
// compile error: E0308

//! Only a possible CPU has a share. Not every number below the maximum is a possible CPU.

use kernel::{bio::BioTask, cpu::CpuId};

/// The address may be invalid.
pub fn misuse(cpu: CpuId) -> &'static BioTask {
    BioTask::per_cpu().of(cpu)
}
