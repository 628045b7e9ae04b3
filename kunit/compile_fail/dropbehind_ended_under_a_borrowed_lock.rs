// SPDX-License-Identifier: GPL-2.0
// compile error: E0599

//! Who has adopted a lock does not end dropbehind: others may use the buffers under it.

use kernel::folio::LockedFolio;

/// It takes the guard that has the lock.
pub fn misuse(folio: &LockedFolio) {
    folio.end_dropbehind();
}
