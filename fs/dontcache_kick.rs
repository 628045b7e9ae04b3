// SPDX-License-Identifier: GPL-2.0

//! The kick asks the flusher for a round. `filemap_dontcache_kick_writeback()` calls it.

use kernel::{
    backing_dev::WbSection,
    bindings,
    flusher::ListsGuard,
    fs::AddressSpace,
    prelude::*,
    writeback::{
        kick::{
            ask,
            is_asked,
            Run, //
        },
        pace::DELAY_MS, //
    }, //
};

/// The section in which the flusher is asked. Lists the inode of `cache` for the round first, if it
/// is not listed.
fn section(cache: &AddressSpace) -> WbSection<'_> {
    if cache.is_dontcache_unlisted() {
        if let Some(lists) = ListsGuard::of_inode(cache.host()) {
            lists.promote(cache.host());
        }
    }
    cache.host().wb_section()
}

/// Runs once or twice a round: cold, to keep it out of the path of most writes.
#[cold]
fn ask_for_round(cache: &AddressSpace) {
    let section = section(cache);
    let asked = section
        .wb()
        .and_then(|wb| ask(wb, || cache.has_dirty_pages()));
    if let (Some(run), Some(wb)) = (asked, section.into_ref()) {
        wb.run_within(match run {
            Run::Now => 0,
            Run::Later => DELAY_MS,
        });
    }
}

/// Asks the flusher to write back dirty dropbehind pages after a `RWF_DONTCACHE` write to
/// `mapping`: at once if the threshold is reached, after a delay otherwise.
///
/// Does nothing for an inode without a wb: it was never dirtied, for instance by direct writes
/// only.
///
/// # Safety
///
/// `mapping` must point at the page cache of an inode that is not freed during the call.
#[export]
pub unsafe extern "C" fn rust_dontcache_kick(mapping: *mut bindings::address_space) {
    // SAFETY: The caller promises a live page cache.
    let cache = unsafe { AddressSpace::from_raw(mapping) };
    if cache.is_dontcache_unlisted() || !cache.host().look_at_wb(is_asked).unwrap_or(false) {
        ask_for_round(cache);
    }
}
