// SPDX-License-Identifier: GPL-2.0

//! The kick asks the flusher for a round. `filemap_dontcache_kick_writeback()` calls it.

use kernel::{
    bindings,
    flusher::ListsGuard,
    fs::AddressSpace,
    prelude::*,
    writeback::kick::{
        ask,
        is_asked,
        Run,
        DELAY_MS, //
    }, //
};

/// Lists the inode of `mapping` for the round, if it is not listed, and asks the flusher. Runs once
/// or twice a round: cold, to keep it out of the path of most writes.
#[cold]
fn ask_for_round(mapping: &AddressSpace) {
    if mapping.is_dontcache_unlisted() {
        if let Some(lists) = ListsGuard::of_inode(mapping.host()) {
            lists.promote(mapping.host());
        }
    }
    let section = mapping.host().wb_section();
    let asked = section
        .wb()
        .and_then(|wb| ask(wb, || mapping.has_dirty_pages()));
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
pub unsafe extern "C" fn dontcache_kick(mapping: *mut bindings::address_space) {
    // SAFETY: The caller promises a live page cache.
    let mapping = unsafe { AddressSpace::from_raw(mapping) };
    if mapping.is_dontcache_unlisted() || !mapping.host().look_at_wb(is_asked).unwrap_or(false) {
        ask_for_round(mapping);
    }
}
