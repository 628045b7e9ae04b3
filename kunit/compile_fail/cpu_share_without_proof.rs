// SPDX-License-Identifier: GPL-2.0
// compile error: E0061

//! Access to a CPU's share needs proof that the context stays.

use kernel::dropbehind::DropRing;

/// The context could move to another CPU before the access.
pub fn misuse() -> &'static DropRing {
    DropRing::of_this_cpu()
}
