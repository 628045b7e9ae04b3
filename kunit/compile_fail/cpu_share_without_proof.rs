// SPDX-License-Identifier: GPL-2.0
// compile error: E0061

//! Access to a CPU's share needs proof that the context stays.

use kernel::bio::BioTask;

/// The context could move to another CPU before the access.
pub fn misuse() -> &'static BioTask {
    BioTask::per_cpu().this()
}
