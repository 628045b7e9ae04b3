// SPDX-License-Identifier: GPL-2.0
// compile error: E0061

//! Dropbehind is taken from a folio without the lock of its page cache.

use kernel::folio::Folio;

pub fn claim(folio: &Folio) {
    folio.claim();
}
