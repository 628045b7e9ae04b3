// SPDX-License-Identifier: GPL-2.0

//! The kick asks the flusher for a round. `filemap_dontcache_kick_writeback()` calls it.

use kernel::{
    bindings,
    flusher::promote,
    fs::AddressSpace,
    prelude::*,
    writeback::kick::{
        ask,
        is_asked,
        Run,
        DELAY_MS, //
    }, //
};

/// Lists the inode of `mapping` for the round, if it is not listed, and requests a round. Cold,
/// because most writes do not need it: it runs once or twice a round, and once for each inode that
/// is not listed.
#[cold]
fn ask_for_round(mapping: &AddressSpace) {
    if mapping.is_dontcache_unlisted() {
        promote(mapping);
    }
    let pages = mapping.lock_pages();
    let Some(wb) = pages.wb() else {
        return;
    };
    // Under the lock, because another context may have made a folio dirty and not yet set the flag.
    if !mapping.may_have_dontcache_dirty() {
        return;
    }
    if let Some(run) = ask(wb) {
        wb.run_within(match run {
            Run::Now => 0,
            Run::Later => DELAY_MS,
        });
    }
}

/// Asks the flusher to write back dirty dropbehind pages after a `RWF_DONTCACHE` write to
/// `mapping`: immediately if the threshold is reached, after a delay otherwise.
///
/// Does nothing if `mapping` has no such page, or its inode has no wb: then it was never dirtied,
/// for instance by direct writes only.
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
