// SPDX-License-Identifier: GPL-2.0
// compile error: E0515

//! A folio is locked for as long as the guard lives.

use kernel::folio::{Folio, LockedFolio};

/// The folio would be unlocked behind the reference that says it is not.
pub fn misuse(folio: &Folio) -> &LockedFolio {
    let guard = folio.lock();
    &guard
}
