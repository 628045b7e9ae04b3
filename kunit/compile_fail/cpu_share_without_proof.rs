// SPDX-License-Identifier: GPL-2.0
// compile error: E0061

//! A CPU's share is reached by who stays on that CPU.

use kernel::bio_batch::BioBatch;

/// The context could be on another CPU by the time that it looks.
pub fn misuse() -> &'static BioBatch {
    BioBatch::per_cpu().this()
}
