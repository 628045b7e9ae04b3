// SPDX-License-Identifier: GPL-2.0

//! The counter of dirty dropbehind pages. The dirty accounting in C calls these functions.
//!
//! Except for `dropbehind_mark()`, C calls them only after it has seen `PG_dropbehind`. A buffered
//! write calls only `dropbehind_claim()`, and only if it finds a dropbehind folio.

use kernel::{
    backing_dev::BdiWriteback,
    bindings,
    ffi::c_long,
    folio::{
        Folio,
        LockedFolio, //
    },
    fs::AddressSpace,
    prelude::*, //
};

/// Counts a dropbehind folio of `nr` pages that became dirty in `mapping`, whose inode has `wb`.
///
/// # Safety
///
/// `mapping` and `wb` must point at the page cache of an inode and at the wb of that inode. The
/// caller must have locked `mapping->i_pages` before it made the folio dirty, and tag the folio
/// before it unlocks.
#[export]
pub unsafe extern "C" fn dontcache_dirtied(
    mapping: *mut bindings::address_space,
    wb: *mut bindings::bdi_writeback,
    nr: c_long,
) {
    // SAFETY: The caller promises a live page cache and wb.
    let (mapping, wb) = unsafe { (AddressSpace::from_raw(mapping), BdiWriteback::from_raw(wb)) };
    wb.add_dontcache_dirty(nr as i64);
    mapping.mark_dontcache_dirty();
}

/// Uncounts a folio of `nr` pages that stopped being dirty on `wb`. The folio was dropbehind at
/// that moment.
///
/// # Safety
///
/// `wb` must point at the wb of the folio's inode. The inode must have kept this wb since before
/// the folio was cleaned.
#[export]
pub unsafe extern "C" fn dontcache_cleaned(wb: *mut bindings::bdi_writeback, nr: c_long) {
    // SAFETY: The caller promises a live wb.
    let wb = unsafe { BdiWriteback::from_raw(wb) };
    wb.add_dontcache_dirty((nr as i64).wrapping_neg());
}

/// Claims `folio` for a user other than DONTCACHE: clears dropbehind and uncounts dirty pages.
///
/// # Safety
///
/// `folio` must point at a folio on which the caller holds a reference, and `mapping` at the page
/// cache of an inode. Neither may be freed during the call. The caller must hold neither the lock
/// of that page cache nor a section of the inode's wb.
#[export]
pub unsafe extern "C" fn dropbehind_claim(
    folio: *mut bindings::folio,
    mapping: *mut bindings::address_space,
) {
    // SAFETY: The caller promises a live folio and a live page cache.
    let (folio, mapping) = unsafe { (Folio::from_raw(folio), AddressSpace::from_raw(mapping)) };
    folio.claim(&mapping.lock_pages());
}

/// Marks `folio` dropbehind, and counts its pages if it is dirty. The folio leaves the page cache
/// after its next writeback, for which the caller kicks the flusher. Returns false, without a
/// change, if the folio is mapped or in no page cache.
///
/// # Safety
///
/// `folio` must point at a folio that the caller has locked, in the page cache of an inode or in
/// none. The caller must hold neither the lock of that page cache nor a section of the inode's wb.
/// The folio must not be in the page cache of a block device, or of a file whose data the file
/// system journals: their folios are made dirty without their lock.
#[export]
pub unsafe extern "C" fn dropbehind_mark(folio: *mut bindings::folio) -> bool {
    // SAFETY: The caller promises the lock.
    let folio = unsafe { LockedFolio::assume_locked(folio) };
    folio
        .mapping()
        .is_some_and(|mapping| folio.mark_dropbehind(&mapping.lock_pages()))
}
