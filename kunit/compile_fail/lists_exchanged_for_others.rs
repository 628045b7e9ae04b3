// SPDX-License-Identifier: GPL-2.0
// compile error: E0596

//! A guard whose lists are exchanged would unlock the wrong ones.

use core::mem::swap;
use kernel::{
    flusher::{Lists, ListsGuard},
    fs::AddressSpace,
};

pub fn exchange<'a>(mapping: &'a AddressSpace, locked_by_others: &mut Lists<'a>) {
    if let Some(mut guard) = ListsGuard::of(mapping) {
        swap(&mut *guard, locked_by_others);
    }
}
