// SPDX-License-Identifier: GPL-2.0

//! The kick: what `generic_write_sync()` calls.

use kernel::{
    bindings,
    flusher::ListsGuard,
    fs::AddressSpace,
    prelude::*,
    writeback::kick, //
};

/// Asks the flusher to write back dirty dropbehind pages, after a `RWF_DONTCACHE` write to `cache`.
///
/// Nothing to do for an inode that has no wb: it was never dirtied, as by a direct write.
#[inline(always)]
pub(super) fn after_write(cache: &AddressSpace) {
    let inode = cache.host();
    // Before the kick: the round that follows is to find the inode.
    if cache.is_dontcache_unlisted() {
        list(cache);
    }
    let section = inode.wb_section();
    let kicked = |wb| kick::kick(wb, || cache.has_dirty_pages());
    if !section.wb().is_some_and(kicked) {
        return;
    }
    if let Some(wb) = section.into_ref() {
        wb.wakeup();
    }
}

/// Once a round for each inode, so not for the path of most writes.
#[cold]
fn list(cache: &AddressSpace) {
    if let Some(mut lists) = ListsGuard::of_inode(cache.host()) {
        lists.promote(cache.host());
    }
}

/// [`after_write`], for `mapping`.
///
/// # Safety
///
/// `mapping` must point at the page cache of an inode that is not freed during the call.
#[export]
pub unsafe extern "C" fn rust_dontcache_kick(mapping: *mut bindings::address_space) {
    // SAFETY: The caller promises a live page cache.
    after_write(unsafe { AddressSpace::from_raw(mapping) });
}
