// SPDX-License-Identifier: GPL-2.0
// compile error: E0277

//! The lock of a folio is released by the context that took it.

use kernel::folio::Folio;

fn elsewhere<T: Send>(_: T) {}

/// A lock that is handed to another thread is no longer held by this one.
pub fn misuse(folio: &Folio) {
    elsewhere(folio.lock());
}
