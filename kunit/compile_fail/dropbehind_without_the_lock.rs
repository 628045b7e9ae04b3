// SPDX-License-Identifier: GPL-2.0
// compile error: E0599

//! The dropbehind flag is set under the lock of the folio.

use kernel::folio::Folio;

/// An unlocked folio can be read, not marked.
pub fn misuse(folio: &Folio) {
    folio.set_dropbehind();
}
