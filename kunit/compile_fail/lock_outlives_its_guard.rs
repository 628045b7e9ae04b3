// SPDX-License-Identifier: GPL-2.0
// compile error: E0515

//! A folio is locked only while the guard lives.

use kernel::folio::{Folio, LockedFolio};

/// The reference to a locked folio would outlive the lock.
pub fn misuse(folio: &Folio) -> Option<&LockedFolio> {
    let guard = folio.try_lock()?;
    Some(&guard)
}
