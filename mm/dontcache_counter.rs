// SPDX-License-Identifier: GPL-2.0

//! The counter of dirty dropbehind pages: what the dirty accounting in C calls.
//!
//! C comes here only after it has seen `PG_dropbehind`, so a buffered write never does.

use kernel::{
    backing_dev::BdiWriteback,
    bindings,
    ffi::c_long,
    folio::Folio,
    fs::AddressSpace,
    prelude::*,
    writeback::account::settle, //
};

/// Counts the `nr` pages of `folio` on `wb`, or takes them out, as its flags demand. `counts` is what
/// the change asks for that the caller has seen.
#[inline(always)]
fn account(folio: &Folio, counts: bool, wb: &BdiWriteback, nr: i64) {
    match settle(folio, counts) {
        0 => {}
        change => wb.add_dontcache_dirty(change.wrapping_mul(nr)),
    }
}

/// The dropbehind `folio` of `nr` pages became dirty on `wb`.
///
/// # Safety
///
/// The three must point at a folio in the page cache of an inode, at that page cache and at the wb
/// of that inode. The caller must hold the lock of `mapping->i_pages`, which keeps the wb, and must
/// not let go of it before it has tagged the folio as dirty.
#[export]
pub unsafe extern "C" fn rust_dontcache_dirtied(
    folio: *mut bindings::folio,
    mapping: *mut bindings::address_space,
    wb: *mut bindings::bdi_writeback,
    nr: c_long,
) {
    // SAFETY: The caller promises a live folio, page cache and wb.
    let (folio, mapping, wb) = unsafe {
        (
            Folio::from_raw(folio),
            AddressSpace::from_raw(mapping),
            BdiWriteback::from_raw(wb),
        )
    };
    account(folio, true, wb, nr as i64);
    mapping.mark_dontcache_dirty();
}

/// The dropbehind `folio` of `nr` pages stopped being dirty on `wb`: it was cleaned for I/O, or its
/// data was cancelled or truncated.
///
/// # Safety
///
/// They must point at a folio and at the wb of its inode, which keeps that wb during the call.
#[export]
pub unsafe extern "C" fn rust_dontcache_cleaned(
    folio: *mut bindings::folio,
    wb: *mut bindings::bdi_writeback,
    nr: c_long,
) {
    // SAFETY: The caller promises a live folio and wb.
    let (folio, wb) = unsafe { (Folio::from_raw(folio), BdiWriteback::from_raw(wb)) };
    account(folio, false, wb, nr as i64);
}

/// Takes dropbehind away from `folio`: somebody else than DONTCACHE uses it.
///
/// # Safety
///
/// `folio` must point at a folio that the caller holds a reference on, and `mapping` at the page
/// cache of an inode, neither freed during the call.
#[export]
pub unsafe extern "C" fn rust_dontcache_claim(
    folio: *mut bindings::folio,
    mapping: *mut bindings::address_space,
) {
    // SAFETY: The caller promises a live folio and a live page cache.
    let (folio, mapping) = unsafe { (Folio::from_raw(folio), AddressSpace::from_raw(mapping)) };
    if !mapping.can_writeback() {
        folio.test_clear_dropbehind();
        return;
    }
    let inode = mapping.host();
    let section = inode.wb_section();
    if !folio.test_clear_dropbehind() {
        return;
    }
    if let Some(wb) = section.wb() {
        return account(folio, false, wb, folio.nr_pages() as i64);
    }
    drop(section);
    // The inode may have got its first wb since. Whoever dirties the folio from here on sees it
    // without dropbehind.
    if let Some(wb) = inode.wb_section().wb() {
        account(folio, false, wb, folio.nr_pages() as i64);
    }
}

/// The inode of `folio` moves from `old_wb` to `new_wb`, whose flusher is woken in the end. If the
/// folio is counted, its pages go with it, and that flusher has to see to them: the kick that was
/// meant for them stays behind.
///
/// # Safety
///
/// They must point at a folio in the page cache of an inode and at two wbs, and nobody else may
/// account that inode's folios during the call.
#[export]
pub unsafe extern "C" fn rust_dontcache_moved(
    folio: *mut bindings::folio,
    old_wb: *mut bindings::bdi_writeback,
    new_wb: *mut bindings::bdi_writeback,
) {
    // SAFETY: The caller promises a live folio.
    let folio = unsafe { Folio::from_raw(folio) };
    if !folio.test_dontcache_counted() {
        return;
    }
    let pages = folio.nr_pages() as i64;
    // SAFETY: The caller promises two live wbs.
    let (old, new) = unsafe {
        (
            BdiWriteback::from_raw(old_wb),
            BdiWriteback::from_raw(new_wb),
        )
    };
    old.add_dontcache_dirty(pages.wrapping_neg());
    new.add_dontcache_dirty(pages);
    new.leave_dontcache();
}
