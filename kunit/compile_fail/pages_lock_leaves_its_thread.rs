// SPDX-License-Identifier: GPL-2.0
// compile error: E0277

//! Interrupts were turned off here, and would be turned on elsewhere.

use kernel::fs::PagesGuard;

fn to_another_thread<T: Send>(_: T) {}

pub fn leave(pages: PagesGuard<'static>) {
    to_another_thread(pages);
}
