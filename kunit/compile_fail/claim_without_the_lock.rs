// SPDX-License-Identifier: GPL-2.0
// compile error: E0061

//! Clearing dropbehind ("claim") needs the lock of the page cache.

use kernel::folio::Folio;

pub fn claim(folio: &Folio) {
    folio.claim();
}
