// SPDX-License-Identifier: GPL-2.0
// compile error: E0277

//! The context that locks a folio unlocks it.

use kernel::folio::Folio;

fn elsewhere<T: Send>(_: T) {}

/// The lock would be released by a thread that does not hold it.
pub fn misuse(folio: &Folio) {
    elsewhere(folio.try_lock());
}
