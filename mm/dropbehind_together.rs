// SPDX-License-Identifier: GPL-2.0

//! Drops the folios of a bio from the page cache in batches.

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

/// Begins a batch for the current task, which ends the folios of a bio. The bio's first folio is
/// `first`; it has `nr_pieces` segments, the first of `bytes`. Returns null if the folios are to be
/// dropped one by one: the bio has a single folio, its folios are too large, or another task uses
/// this CPU's batch.
///
/// Context: a task.
///
/// # Safety
///
/// `first` must point at a folio that is not freed during the call. The caller must give the
/// returned batch to [`rust_drop_batch_end`], and must not wait for a folio lock until then.
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

/// Adds `folio` to the batch. Returns false if the folio cannot be added now.
///
/// # Safety
///
/// The current task must own `batch` since a call of [`rust_drop_batch_begin`], and must not be in
/// an interrupt. `folio` must point at a folio that is or was in a page cache and is not freed
/// during the call.
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

/// Drops the folios of the batch and ends it.
///
/// Context: a task with interrupts on.
///
/// # Safety
///
/// `batch` must come from [`rust_drop_batch_begin`]. It must be ended only once.
#[export]
pub unsafe extern "C" fn rust_drop_batch_end(batch: *mut bindings::rust_drop_batch) {
    // SAFETY: The caller promises a batch whose owner was forgotten.
    drop(unsafe { OwnDropBatch::taken_up(batch) });
}

/// Drops `folio` on its own if it is dropbehind and clean. If a reference or another use prevents
/// the drop, dropbehind stays set: the drop can be retried, the folio counts if it becomes dirty,
/// and a lookup can clear the flag. A folio at the end of a file that is open for writing is kept
/// for a while, because appending writes use it again.
///
/// Context: a task with interrupts on.
///
/// # Safety
///
/// `folio` must point at a folio that is in a page cache, locked by the current task, and not freed
/// during the call.
#[export]
pub unsafe extern "C" fn rust_drop_locked(folio: *mut bindings::folio) {
    // SAFETY: The caller promises what `drop_locked()` requires.
    unsafe { drop_locked(NonNull::new_unchecked(folio), true) };
}
