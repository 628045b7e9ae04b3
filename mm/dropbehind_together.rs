// SPDX-License-Identifier: GPL-2.0

//! Folios that leave the page cache together at the end of their bio.

use core::{
    mem::forget,
    ptr::{
        self,
        NonNull, //
    }, //
};
use kernel::{
    bindings,
    drop_batch::{
        drop_locked,
        DropBatch,
        OwnDropBatch, //
    },
    folio::Folio,
    percpu::PossibleCpu,
    prelude::*,
    writeback::together::is_worth_it, //
};

/// Has the current task gather folios that are to be dropped, at the end of a bio whose first folio
/// is `first`, and that consists of `nr_pieces` pieces of memory, the first of them of `bytes`.
/// Returns null if it is to drop them one by one: if there is but one, or if somebody else is at it
/// with the storage of this CPU.
///
/// Context: a task.
///
/// # Safety
///
/// `first` must point at a folio that is not freed during the call. Until [`rust_drop_batch_end`],
/// to which the caller must give what is returned, it must not wait for a folio's lock.
#[export]
pub unsafe extern "C" fn rust_drop_batch_begin(
    first: *mut bindings::folio,
    nr_pieces: u32,
    bytes: u32,
) -> *mut bindings::rust_drop_batch {
    // SAFETY: The caller promises a live folio.
    let size = unsafe { Folio::from_raw(first) }.size();
    if !is_worth_it(size, nr_pieces as usize, bytes as usize) {
        return ptr::null_mut();
    }
    let Some(own) = DropBatch::per_cpu().of(PossibleCpu::current()).begin() else {
        return ptr::null_mut();
    };
    let batch = own.as_raw();
    forget(own);
    batch
}

/// Gathers `folio`, which is to be dropped. Returns false if it cannot be now.
///
/// # Safety
///
/// `batch` must be owned by the current task, since a call of [`rust_drop_batch_begin`], and this
/// must be no interrupt. `folio` must point at a folio that is or was in a page cache and is not
/// freed during the call.
#[export]
pub unsafe extern "C" fn rust_drop_batch_add(
    batch: *mut bindings::rust_drop_batch,
    folio: *mut bindings::folio,
) -> bool {
    // SAFETY: The caller promises a batch whose owner was forgotten, and a live folio.
    let (mut own, folio) = unsafe { (OwnDropBatch::taken_up(batch), Folio::from_raw(folio)) };
    let added = own.add(folio);
    forget(own);
    added
}

/// Drops what was gathered.
///
/// Context: a task with interrupts on.
///
/// # Safety
///
/// `batch` must be what [`rust_drop_batch_begin`] has returned, once.
#[export]
pub unsafe extern "C" fn rust_drop_batch_end(batch: *mut bindings::rust_drop_batch) {
    // SAFETY: The caller promises a batch whose owner was forgotten.
    drop(unsafe { OwnDropBatch::taken_up(batch) });
}

/// Drops `folio` by itself, if it is to be dropped and can be. Keeps dropbehind if somebody's use
/// of the folio prevents that: so it can be tried again, is counted should it become dirty
/// meanwhile, and can be claimed by a lookup. The folio that a file ends in is kept for a while, if
/// somebody may append to that.
///
/// Context: a task with interrupts on.
///
/// # Safety
///
/// `folio` must point at a folio that is in a page cache, locked by the current task, and not freed
/// during the call.
#[export]
pub unsafe extern "C" fn rust_drop_locked(folio: *mut bindings::folio) {
    // SAFETY: The caller promises what is asked for.
    unsafe { drop_locked(NonNull::new_unchecked(folio), true) };
}
