// SPDX-License-Identifier: GPL-2.0

//! The kick: what `generic_write_sync()` and the flusher call.

use kernel::{
    backing_dev::BdiWriteback,
    bindings,
    fs::AddressSpace,
    prelude::*,
    writeback::kick::{
        consume,
        kick,
        leave, //
    }, //
};

/// Asks the flusher to write back dirty dropbehind pages, after a `RWF_DONTCACHE` write to
/// `mapping`.
///
/// Nothing to do for an inode that has no wb: it was never dirtied, as by a direct write.
///
/// # Safety
///
/// `mapping` must point at the page cache of an inode that is not freed during the call.
#[export]
pub unsafe extern "C" fn rust_dontcache_kick(mapping: *mut bindings::address_space) {
    // SAFETY: The caller promises a live page cache.
    let mapping = unsafe { AddressSpace::from_raw(mapping) };
    let section = mapping.host().wb_section();
    let kicked = |wb| kick(wb, || mapping.has_dirty_pages());
    if !section.wb().is_some_and(kicked) {
        return;
    }
    if let Some(wb) = section.into_ref() {
        wb.wakeup();
    }
}

/// Takes the request that a kick has left with `wb`, and returns how many pages to write for it:
/// nothing if that is not above zero.
///
/// # Safety
///
/// `wb` must point at a wb that is not freed during the call.
#[export]
pub unsafe extern "C" fn rust_dontcache_consume(wb: *mut bindings::bdi_writeback) -> i64 {
    // SAFETY: The caller promises a live wb.
    consume(unsafe { BdiWriteback::from_raw(wb) })
}

/// Whether `wb` has dirty dropbehind pages: they are noted as left for the flusher, which is about
/// to rest and then has to come back soon.
///
/// # Safety
///
/// `wb` must point at a wb that is not freed during the call.
#[export]
pub unsafe extern "C" fn rust_dontcache_leave(wb: *mut bindings::bdi_writeback) -> bool {
    // SAFETY: The caller promises a live wb.
    leave(unsafe { BdiWriteback::from_raw(wb) })
}
