// SPDX-License-Identifier: GPL-2.0

//! The kick: what `generic_write_sync()` calls.

use kernel::{
    backing_dev::WbSection,
    bindings,
    flusher::ListsGuard,
    fs::AddressSpace,
    prelude::*,
    writeback::kick::{
        ask,
        kick,
        Run, //
    }, //
};

/// The section in which the flusher is asked. It finds the inode of `cache` in the round that follows.
#[inline(always)]
fn section(cache: &AddressSpace) -> WbSection<'_> {
    if cache.is_dontcache_unlisted() {
        list(cache);
    }
    cache.host().wb_section()
}

/// Asks the flusher to write back dirty dropbehind pages, after a `RWF_DONTCACHE` write to `cache`:
/// when there are enough of them, or have been for long enough.
///
/// Nothing to do for an inode that has no wb: it was never dirtied, as by a direct write.
#[inline(always)]
pub(super) fn ask_after_write(cache: &AddressSpace) {
    let section = section(cache);
    let asked = section
        .wb()
        .and_then(|wb| ask(wb, || cache.has_dirty_pages()));
    if let Some(run) = asked {
        wake(section, run);
    }
}

/// The same, at once.
pub(super) fn kick_after_write(cache: &AddressSpace) {
    let section = section(cache);
    let kicked = |wb| kick(wb, || cache.has_dirty_pages());
    if section.wb().is_some_and(kicked) {
        wake(section, Run::Now);
    }
}

/// Once a round, so not for the path of most writes.
#[cold]
fn wake(section: WbSection<'_>, run: Run) {
    let Some(wb) = section.into_ref() else {
        return;
    };
    match run {
        Run::Now => wb.wakeup(),
        Run::Within(milliseconds) => wb.run_within(milliseconds),
    }
}

/// Once a round for each inode, so not for the path of most writes.
#[cold]
fn list(cache: &AddressSpace) {
    if let Some(mut lists) = ListsGuard::of_inode(cache.host()) {
        lists.promote(cache.host());
    }
}

/// [`ask_after_write`], for `mapping`.
///
/// # Safety
///
/// `mapping` must point at the page cache of an inode that is not freed during the call.
#[export]
pub unsafe extern "C" fn rust_dontcache_kick(mapping: *mut bindings::address_space) {
    // SAFETY: The caller promises a live page cache.
    ask_after_write(unsafe { AddressSpace::from_raw(mapping) });
}
