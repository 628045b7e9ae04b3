// SPDX-License-Identifier: GPL-2.0

//! The flusher's round for DONTCACHE writes. The hooks in fs-writeback.c call it.

use kernel::{
    backing_dev::BdiWriteback,
    bindings,
    ffi::{
        c_int,
        c_long,
        c_ulong, //
    },
    flusher::{
        Due,
        Flusher,
        Lists, //
    },
    fs::Inode,
    prelude::*,
    writeback::{
        kick::{
            before_sleep,
            consume,
            is_asked_for, //
        },
        round::{
            again_in,
            round,
            During,
            Purpose, //
        }, //
    }, //
};

/// Writes the `counted` pages, and returns how many it has written. Not inlined, to keep the path
/// without a request short.
#[inline(never)]
fn write(mut flusher: Flusher<'_>, counted: i64, purpose: Purpose) -> i64 {
    let quota = flusher.wb().quota();
    let written = round(&mut flusher, counted, quota, purpose);
    flusher.end_round(counted, written);
    written.pages
}

/// Serves a kick. Returns how many pages were written.
///
/// # Safety
///
/// `wb` must point at a live wb. The context must be that of its flusher, without a lock.
#[export]
pub unsafe extern "C" fn dontcache_flush(wb: *mut bindings::bdi_writeback) -> c_long {
    // SAFETY: The caller promises a live wb.
    let Some(asked) = consume(unsafe { BdiWriteback::from_raw(wb) }) else {
        return 0;
    };
    // SAFETY: The caller promises the flusher's context.
    let flusher = unsafe { Flusher::assume_running(wb, None) };
    write(flusher, asked, Purpose::Alone) as c_long
}

/// Serves a kick between two portions of work that writes inodes dirtied before `dirtied_before`,
/// of one super block unless `sb` is null. With `next_work`, serves it before the next work item or
/// before a rescuer's writeback. Without this, many or long work items would delay a kick.
///
/// # Safety
///
/// `wb` must point at a live wb. The context must be that of its flusher, without a lock.
#[export]
pub unsafe extern "C" fn dontcache_flush_beside(
    wb: *mut bindings::bdi_writeback,
    next_work: bool,
    sb: *mut bindings::super_block,
    dirtied_before: c_ulong,
) {
    // SAFETY: The caller promises a live wb.
    if !is_asked_for(unsafe { BdiWriteback::from_raw(wb) }) {
        return;
    }
    let sync = Due::of_sync(sb, dirtied_before);
    let during = match sync {
        _ if next_work => During::NextWork,
        Some(_) => During::Sync,
        None => During::OtherWork,
    };
    // SAFETY: The caller promises the flusher's context.
    let flusher = unsafe { Flusher::assume_running(wb, sync.as_ref()) };
    let Some(purpose) = during.purpose(flusher.wb().served_ms_ago()) else {
        return;
    };
    if let Some(asked) = consume(flusher.wb()) {
        write(flusher, asked, purpose);
    }
}

/// Schedules the flusher again before it sleeps, if pages are left for it to write.
///
/// # Safety
///
/// `wb` must point at a live wb. The context must be that of its flusher, without a lock.
#[export]
pub unsafe extern "C" fn dontcache_before_sleep(wb: *mut bindings::bdi_writeback) {
    // SAFETY: The caller promises the flusher's context.
    let flusher = unsafe { Flusher::assume_running(wb, None) };
    let wb = flusher.wb();
    if let Some(milliseconds) = before_sleep(wb) {
        wb.run_within(again_in(
            milliseconds,
            flusher.is_rescuer(),
            wb.served_ms_ago(),
        ));
    }
}

/// Initialises the state that a new wb keeps between rounds.
///
/// # Safety
///
/// `wb` must point at an initialised wb that no other context can reach yet.
#[export]
pub unsafe extern "C" fn dontcache_init(wb: *mut bindings::bdi_writeback) {
    // SAFETY: The caller promises a live wb that no other context can reach.
    unsafe { BdiWriteback::from_raw(wb).init_rounds() };
}

/// Queues the inodes of `b_dontcache` that were dirtied before `dirtied_before`. A non-null `sb`
/// limits this to its inodes. Returns how many inodes were queued.
///
/// # Safety
///
/// `wb` must point at a live wb whose `list_lock` the caller holds, in its flusher's context.
#[export]
pub unsafe extern "C" fn dontcache_queue(
    wb: *mut bindings::bdi_writeback,
    sb: *mut bindings::super_block,
    dirtied_before: c_ulong,
) -> c_int {
    // SAFETY: The caller promises the lock.
    let lists = unsafe { Lists::assume_locked(wb) };
    lists.queue_older(sb, dirtied_before) as c_int
}

/// Returns whether `inode`, which moves to another list of `wb`, belongs in `b_dontcache`.
///
/// # Safety
///
/// `inode` and `wb` must be live, and `wb` be that of the inode. The caller must hold the
/// `list_lock` of `wb` and the lock of the inode, and not the lock of the inode's page cache unless
/// `I_WB_SWITCH` is set.
#[export]
pub unsafe extern "C" fn dontcache_keeps(
    inode: *mut bindings::inode,
    wb: *mut bindings::bdi_writeback,
) -> bool {
    // SAFETY: The caller promises the lock, and a live inode.
    let (lists, inode) = unsafe { (Lists::assume_locked(wb), Inode::from_raw(inode)) };
    lists.keeps(inode)
}
