// SPDX-License-Identifier: GPL-2.0

//! The round: what the flusher calls, where fs-writeback.c has hooks.

use crate::dontcache_policy as policy;
use kernel::{
    backing_dev::BdiWriteback,
    bindings,
    ffi::{
        c_int,
        c_long,
        c_ulong, //
    },
    flusher::{
        Flusher,
        Lists, //
    },
    fs::AddressSpace,
    prelude::*,
    wb_pace::WbPace,
    writeback::{
        kick::{
            consume,
            ended,
            go_on,
            is_asked_for,
            rest,
            Request,
            Wb, //
        },
        round::{
            round,
            During,
            Purpose,
            BETWEEN_MS, //
        }, //
    }, //
};

/// Writes what was asked for, `most` pages of it, and returns how many it has written. Apart, to
/// keep short what finds nothing.
#[inline(never)]
fn write(mut flusher: Flusher<'_>, asked: Request, purpose: Purpose, most: i64) -> i64 {
    let wb = flusher.wb();
    let Request {
        pages,
        why,
        rest_ms,
    } = asked;
    let budget = pages.min(most);
    flusher.set_reason(why);
    flusher.adapt(asked);
    let purpose = if policy::is_default() {
        purpose.paced(rest_ms)
    } else {
        purpose
    };
    let written = flusher.plugged(|flusher| round(flusher, budget, purpose));
    let written = written.of_turn(budget, pages);
    flusher.pace().end_round(written);
    if policy::has_flusher() || written.again_ms.is_some() {
        ended(wb, pages, written);
    }
    if policy::is_default() {
        go_on(wb);
    }
    written.pages
}

/// What the flusher does for a kick. Returns how many pages that were.
///
/// # Safety
///
/// `wb` must point at a live wb. The context must be that of its flusher, without a lock.
#[export]
pub unsafe extern "C" fn rust_dontcache_flush(wb: *mut bindings::bdi_writeback) -> c_long {
    // SAFETY: The caller promises a live wb.
    let Some(asked) = consume(unsafe { BdiWriteback::from_raw(wb) }) else {
        return 0;
    };
    // SAFETY: The caller promises the flusher's context.
    let flusher = unsafe { Flusher::assume_running(wb) };
    write(flusher, asked, Purpose::Alone, i64::MAX) as c_long
}

/// The same between two portions of `work`, which is for what was dirtied before `dirtied_before`;
/// or in front of another work or of what a rescuer does, where `work` is null. So neither many nor
/// long works delay a kick.
///
/// # Safety
///
/// `wb` must point at a live wb, `work` at the work that its flusher does, or be null. The context
/// must be that flusher's, without a lock.
#[export]
pub unsafe extern "C" fn rust_dontcache_flush_beside(
    wb: *mut bindings::bdi_writeback,
    work: *mut bindings::wb_writeback_work,
    dirtied_before: c_ulong,
) {
    // SAFETY: The caller promises a live wb.
    if !is_asked_for(unsafe { BdiWriteback::from_raw(wb) }) {
        return;
    }
    let (flusher, during) = if work.is_null() {
        // SAFETY: The caller promises the flusher's context.
        (unsafe { Flusher::assume_running(wb) }, During::NextWork)
    } else {
        // SAFETY: The caller promises the flusher's context, and that it does this work.
        let flusher = unsafe { Flusher::assume_running_beside(wb, work, dirtied_before) };
        let during = if flusher.is_beside_sync() {
            During::Sync
        } else {
            During::OtherWork
        };
        (flusher, during)
    };
    let Some(purpose) = during.purpose(flusher.pace().rested_ms()) else {
        return;
    };
    if let Some(asked) = consume(flusher.wb()) {
        let most = if during == During::OtherWork && flusher.has_others() {
            flusher.pace().turn()
        } else {
            i64::MAX
        };
        write(flusher, asked, purpose, most);
    }
}

/// The flusher is about to rest. What is left for it to do is tried again.
///
/// # Safety
///
/// `wb` must point at a live wb. The context must be that of its flusher, without a lock.
#[export]
pub unsafe extern "C" fn rust_dontcache_rest(wb: *mut bindings::bdi_writeback) {
    // SAFETY: The caller promises the flusher's context.
    let flusher = unsafe { Flusher::assume_running(wb) };
    // What a writer was promised under another policy is kept.
    let wb = flusher.wb();
    if !policy::has_flusher() && !wb.is_left() && !wb.is_pending() {
        return;
    }
    let again = rest(wb);
    let again = if again == Some(0) && flusher.is_rescuer() {
        // It leaves alone what is due while it has just been served.
        Some(BETWEEN_MS.saturating_sub(flusher.pace().rested_ms()) as u32)
    } else {
        again
    };
    flusher.run_again_within(again);
}

/// How many pages of the inode of `mapping` are written for a round: `most`, or less.
///
/// # Safety
///
/// `wb` must point at a live wb and `mapping` at a live page cache. The context must be that of the
/// wb's flusher, which is about to write that inode, without a lock.
#[export]
pub unsafe extern "C" fn rust_dontcache_chunk(
    wb: *mut bindings::bdi_writeback,
    mapping: *mut bindings::address_space,
    most: c_long,
) -> c_long {
    // SAFETY: The caller promises a live wb and page cache.
    let (wb, cache) = unsafe { (BdiWriteback::from_raw(wb), AddressSpace::from_raw(mapping)) };
    WbPace::of(wb).chunk(most as i64, cache) as c_long
}

/// How many pages of that inode a round has left on purpose, once it is written but for `unwritten`
/// pages of what was to be.
///
/// # Safety
///
/// `wb` must point at a live wb. The context must be that of its flusher, which has written what
/// [`rust_dontcache_chunk`] said last.
#[export]
pub unsafe extern "C" fn rust_dontcache_kept(
    wb: *mut bindings::bdi_writeback,
    unwritten: c_long,
) -> c_long {
    // SAFETY: The caller promises a live wb.
    WbPace::of(unsafe { BdiWriteback::from_raw(wb) }).keep(unwritten as i64) as c_long
}

/// Queues what `b_dontcache` has for work that writes what was dirtied before `dirtied_before`, of
/// `sb` alone if that is not null. Returns how many inodes.
///
/// # Safety
///
/// `wb` must point at a live wb whose `list_lock` the caller holds, in its flusher's context.
#[export]
pub unsafe extern "C" fn rust_dontcache_queue(
    wb: *mut bindings::bdi_writeback,
    sb: *mut bindings::super_block,
    dirtied_before: c_ulong,
) -> c_int {
    // SAFETY: The caller promises the lock.
    let lists = unsafe { Lists::assume_locked(wb) };
    lists.queue_older(sb, dirtied_before) as c_int
}

/// The inode of `mapping` has got into the lists of `wb`, where it may belong into `b_dontcache`.
///
/// # Safety
///
/// `mapping` must point at the page cache of an inode, in the lists of the live `wb`. The caller
/// must hold the `list_lock` of `wb` and the lock of the inode.
#[export]
pub unsafe extern "C" fn rust_dontcache_switched(
    mapping: *mut bindings::address_space,
    wb: *mut bindings::bdi_writeback,
) {
    // SAFETY: The caller promises the lock, and a live page cache.
    let (lists, cache) = unsafe { (Lists::assume_locked(wb), AddressSpace::from_raw(mapping)) };
    lists.adopt(cache.host());
}

/// Whether the inode of `mapping`, which gets into another list of `wb`, belongs into
/// `b_dontcache`.
///
/// # Safety
///
/// `mapping` must point at the page cache of an inode, neither freed during the call, and `wb` at
/// the live wb of that inode. The caller must hold its `list_lock` and the lock of the inode, and
/// not the lock of the page cache.
#[export]
pub unsafe extern "C" fn rust_dontcache_keeps(
    mapping: *mut bindings::address_space,
    wb: *mut bindings::bdi_writeback,
) -> bool {
    // SAFETY: The caller promises the lock, and a live page cache.
    let (lists, cache) = unsafe { (Lists::assume_locked(wb), AddressSpace::from_raw(mapping)) };
    lists.keep(cache)
}
