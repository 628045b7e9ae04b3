// SPDX-License-Identifier: GPL-2.0

//! Drops folios later: those whose writeback ended in an interrupt, and those that were locked or
//! in use.

use kernel::{
    bindings,
    drop_queue::{
        DropQueue,
        OwnDropQueue, //
    },
    folio::Folio,
    interrupts_off::InterruptsSaved,
    leftovers::Leftovers,
    percpu::CpuGuard,
    prelude::*,
    sched, //
};

/// Has a task drop `folio` soon. If a task could not drop it now, the drop is retried later.
///
/// The folio stays until reclaim, as with C, if the CPU's storage is full or all retries fail.
///
/// Context: any but NMI.
///
/// # Safety
///
/// `folio` must point at a folio that is or was in a page cache and is not freed during the call.
#[export]
pub unsafe extern "C" fn rust_drop_later(folio: *mut bindings::folio) {
    // SAFETY: The caller promises a live folio of a page cache.
    let folio = unsafe { Folio::from_raw(folio) };
    if !sched::in_task() {
        // SAFETY: No other guard is made while this one lives, the context is not NMI, and the
        // queue does not turn interrupts on.
        let off = unsafe { InterruptsSaved::new() };
        if OwnDropQueue::this(&off).queue(folio) {
            return;
        }
    }
    Leftovers::per_cpu().this(&CpuGuard::new()).add(folio);
}

/// Tries to drop the folios in `leftovers`.
///
/// # Safety
///
/// `leftovers` must point at the leftovers of a CPU. The caller must be the work item in them.
#[export]
pub unsafe extern "C" fn rust_leftovers_try(leftovers: *mut bindings::rust_leftovers) {
    // SAFETY: The caller promises a CPU's storage, and to be its work item.
    unsafe { Leftovers::from_raw(leftovers) }.try_all();
}

/// Drops the folios in `queue`.
///
/// # Safety
///
/// `queue` must point at the queue of a CPU. The caller must be the work item in it.
#[export]
pub unsafe extern "C" fn rust_drop_queue_drop(queue: *mut bindings::rust_drop_queue) {
    // SAFETY: The caller promises a CPU's storage, and to be its work item.
    unsafe { DropQueue::from_raw(queue).drop_all() };
}
