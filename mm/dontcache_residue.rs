// SPDX-License-Identifier: GPL-2.0

//! The residue: what the counter claims although nothing is dirty.
//!
//! The accounting leaves none. But code elsewhere may take dropbehind from a counted folio, or leave
//! a folio dirty that it takes out of the page cache (which the kernel warns of), and every kick
//! after that would have the flusher look for pages that are not there.

use kernel::{
    backing_dev::BdiWriteback,
    bindings,
    prelude::*,
    sync::{
        atomic::{
            Atomic,
            Relaxed, //
        },
        rcu, //
    },
    writeback::residue::residue, //
};

/// Pages that were taken out of counters since boot.
static HEALED: Atomic<i64> = Atomic::new(0);

/// Takes out of the counter of `wb`, which has no dirty inode, what it claims nevertheless, and
/// returns how many pages that were: below zero if the counter was, and usually none.
///
/// `WB_dontcache_left` is to be clear: pages that come from another wb set it.
///
/// Context: sleeps, if there is something to take out.
///
/// # Safety
///
/// `wb` must point at a wb that is not freed during the call.
#[export]
pub unsafe extern "C" fn rust_dontcache_heal(wb: *mut bindings::bdi_writeback) -> i64 {
    // SAFETY: The caller promises a live wb.
    let wb = unsafe { BdiWriteback::from_raw(wb) };
    let pages = residue(wb, rcu::synchronize_rcu);
    if pages != 0 {
        wb.add_dontcache_dirty(pages.wrapping_neg());
        HEALED.fetch_add(pages.wrapping_abs(), Relaxed);
    }
    pages
}

/// How many pages were taken out of counters since boot, or put in where one was below zero.
///
/// # Safety
///
/// None needed: it is as unsafe as whatever C declares.
#[export]
pub unsafe extern "C" fn rust_dontcache_healed() -> i64 {
    HEALED.load(Relaxed)
}
