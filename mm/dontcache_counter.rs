// SPDX-License-Identifier: GPL-2.0

//! The counter of dirty dropbehind pages: what the dirty accounting in C calls.
//!
//! C comes here only after it has seen `PG_dropbehind`, or when an inode gets another wb: a
//! buffered write never does.

use kernel::{
    backing_dev::BdiWriteback,
    bindings,
    ffi::c_long,
    folio::Folio,
    fs::AddressSpace,
    prelude::*,
    writeback::account::{
        change,
        Flags, //
    }, //
};

/// What both flags are on a folio that counts.
const BOTH: Flags = Flags {
    dirty: true,
    dropbehind: true,
};

/// Adds to the counter of `wb` what a change of the flags of a folio of `nr` pages means for it.
#[inline(always)]
fn account(wb: &BdiWriteback, before: Flags, after: Flags, nr: i64) {
    match change(before, after) {
        0 => {}
        folios => wb.add_dontcache_dirty(folios.wrapping_mul(nr)),
    }
}

/// A dropbehind folio of `nr` pages became dirty in `mapping`, whose inode has `wb`.
///
/// # Safety
///
/// They must point at the page cache of an inode and at its wb. The caller must hold the lock of
/// `mapping->i_pages` since before it made the folio dirty, and tag it before it lets go.
#[export]
pub unsafe extern "C" fn rust_dontcache_dirtied(
    mapping: *mut bindings::address_space,
    wb: *mut bindings::bdi_writeback,
    nr: c_long,
) {
    // SAFETY: The caller promises a live page cache and wb.
    let (mapping, wb) = unsafe { (AddressSpace::from_raw(mapping), BdiWriteback::from_raw(wb)) };
    account(wb, BOTH.cleaned(), BOTH, nr as i64);
    mapping.mark_dontcache_dirty();
}

/// A folio of `nr` pages stopped being dirty on `wb`, and was dropbehind at that moment.
///
/// # Safety
///
/// `wb` must point at the wb of the folio's inode, which keeps it since before the folio was
/// cleaned.
#[export]
pub unsafe extern "C" fn rust_dontcache_cleaned(wb: *mut bindings::bdi_writeback, nr: c_long) {
    // SAFETY: The caller promises a live wb.
    let wb = unsafe { BdiWriteback::from_raw(wb) };
    account(wb, BOTH, BOTH.cleaned(), nr as i64);
}

/// Takes dropbehind away from `folio`: somebody else than DONTCACHE uses it.
///
/// # Safety
///
/// `folio` must point at a folio that the caller holds a reference on, and `mapping` at the page
/// cache of an inode, neither freed during the call. The caller must hold neither the lock of that
/// page cache nor a section of the inode's wb.
#[export]
pub unsafe extern "C" fn rust_dontcache_claim(
    folio: *mut bindings::folio,
    mapping: *mut bindings::address_space,
) {
    // SAFETY: The caller promises a live folio and a live page cache.
    let (folio, mapping) = unsafe { (Folio::from_raw(folio), AddressSpace::from_raw(mapping)) };
    let pages = mapping.lock_pages();
    let Some(before) = folio.claim(&pages) else {
        return;
    };
    // What is not written back is not counted.
    if !mapping.can_writeback() {
        return;
    }
    if let Some(wb) = pages.wb() {
        account(wb, before, before.claimed(), folio.nr_pages() as i64);
    }
}

/// The inode of `folio` moves from `old_wb` to `new_wb`, whose flusher is woken in the end. If the
/// folio counts, its pages go with it, and that flusher has to see to them: the kick that was meant
/// for them stays behind.
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
    if !folio.is_dontcache_dirty() {
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
    kernel::writeback::kick::leave(new);
}
