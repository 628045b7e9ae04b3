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
        is_asked,
        kick,
        Run, //
    }, //
};

/// The section in which the flusher is asked. It finds the inode of `cache` in the round that
/// follows.
fn section(cache: &AddressSpace) -> WbSection<'_> {
    if cache.is_dontcache_unlisted() {
        if let Some(lists) = ListsGuard::of_inode(cache.host()) {
            lists.promote(cache.host());
        }
    }
    cache.host().wb_section()
}

/// Asks the flusher to write back dirty dropbehind pages, after a `RWF_DONTCACHE` write to `cache`:
/// when there are enough of them, or have been for long enough.
///
/// Nothing to do for an inode that has no wb: it was never dirtied, as by a direct write.
#[inline(always)]
pub(super) fn ask_after_write(cache: &AddressSpace) {
    if cache.is_dontcache_unlisted() || !cache.host().look_at_wb(is_asked).unwrap_or(false) {
        ask_for_round(cache);
    }
}

/// Once or twice a round, so not for the path of most writes.
#[cold]
fn ask_for_round(cache: &AddressSpace) {
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

fn wake(section: WbSection<'_>, run: Run) {
    let Some(wb) = section.into_ref() else {
        return;
    };
    match run {
        Run::Now => wb.run_within(0),
        Run::Within(milliseconds) => wb.run_within(milliseconds),
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
