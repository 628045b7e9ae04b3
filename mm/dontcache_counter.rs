// SPDX-License-Identifier: GPL-2.0

//! The counter of dirty dropbehind pages: what the dirty accounting in C calls.
//!
//! C counts a folio only after it has seen `PG_dropbehind`, so a buffered write never comes here.

use kernel::{
    backing_dev::BdiWriteback,
    bindings,
    ffi::c_long,
    folio::Folio,
    fs::AddressSpace,
    prelude::*,
    writeback::account::{
        moved,
        Event,
        FolioState, //
    }, //
};

const CLEAN: FolioState = FolioState::DROPBEHIND;
const DIRTY: FolioState = CLEAN.after(Event::Dirty);

/// A dropbehind folio of `nr` pages became dirty on `wb`.
///
/// # Safety
///
/// `wb` must point at a wb that is not freed during the call.
#[export]
pub unsafe extern "C" fn rust_dontcache_dirtied(wb: *mut bindings::bdi_writeback, nr: c_long) {
    // SAFETY: The caller promises a live wb.
    let wb = unsafe { BdiWriteback::from_raw(wb) };
    wb.add_dontcache_dirty(CLEAN.change(Event::Dirty, nr as i64));
}

/// A dropbehind folio of `nr` pages stopped being dirty on `wb`: it was cleaned for I/O, or its
/// data was cancelled or truncated.
///
/// # Safety
///
/// `wb` must point at a wb that is not freed during the call.
#[export]
pub unsafe extern "C" fn rust_dontcache_cleaned(wb: *mut bindings::bdi_writeback, nr: c_long) {
    // SAFETY: The caller promises a live wb.
    let wb = unsafe { BdiWriteback::from_raw(wb) };
    wb.add_dontcache_dirty(DIRTY.change(Event::Clean, nr as i64));
}

/// An ordinary lookup has taken dropbehind away from `folio`.
///
/// # Safety
///
/// `folio` must point at a folio that the caller holds a reference on, and `mapping` at the page
/// cache of an inode, neither freed during the call.
#[export]
pub unsafe extern "C" fn rust_dontcache_claimed(
    folio: *mut bindings::folio,
    mapping: *mut bindings::address_space,
) {
    // SAFETY: The caller promises a live folio and a live page cache.
    let (folio, mapping) = unsafe { (Folio::from_raw(folio), AddressSpace::from_raw(mapping)) };
    if !folio.test_dirty() || !mapping.can_writeback() {
        return;
    }
    let pages = folio.nr_pages() as i64;
    let section = mapping.host().wb_section();
    if let Some(wb) = section.wb() {
        wb.add_dontcache_dirty(DIRTY.change(Event::Claim, pages));
    }
}

/// The inode of a dirty dropbehind folio of `nr` pages moves from `old_wb` to `new_wb`.
///
/// # Safety
///
/// Both must point at wbs that are not freed during the call.
#[export]
pub unsafe extern "C" fn rust_dontcache_moved(
    old_wb: *mut bindings::bdi_writeback,
    new_wb: *mut bindings::bdi_writeback,
    nr: c_long,
) {
    let (old, new) = moved(nr as i64);
    // SAFETY: The caller promises two live wbs.
    unsafe {
        BdiWriteback::from_raw(old_wb).add_dontcache_dirty(old);
        BdiWriteback::from_raw(new_wb).add_dontcache_dirty(new);
    }
}
