// SPDX-License-Identifier: GPL-2.0
// compile error: E0599

//! To mark data as valid needs the lock of the folio.

use kernel::folio::Folio;

/// An unlocked folio can only be read.
pub fn misuse(folio: &Folio) {
    folio.mark_uptodate();
}
