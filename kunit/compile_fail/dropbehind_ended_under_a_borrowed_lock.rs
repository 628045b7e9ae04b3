// SPDX-License-Identifier: GPL-2.0
// compile error: E0599

//! A borrowed lock cannot end dropbehind: other code may use the buffers under it.

use kernel::folio::LockedFolio;

/// Only the guard that owns the lock can do so.
pub fn misuse(folio: &LockedFolio) {
    // SAFETY: The context is a task with interrupts on, for the sake of the example.
    unsafe { folio.end_dropbehind() };
}
