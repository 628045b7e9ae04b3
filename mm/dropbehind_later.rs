// SPDX-License-Identifier: GPL-2.0

//! Folios that were to leave the page cache in an interrupt, or while somebody else had them locked
//! or in use.

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

/// Has `folio` dropped by a task, soon, or tried again in a while if a task could not do it now.
///
/// Where the CPU has remembered as many as it can, and where all tries fail, the folio stays until
/// it is reclaimed, as it does with C.
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
        // SAFETY: No other guard is made while this lives, it is no NMI's, and the queue turns no
        // interrupts on.
        let off = unsafe { InterruptsSaved::new() };
        if OwnDropQueue::this(&off).queue(folio) {
            return;
        }
    }
    Leftovers::per_cpu().this(&CpuGuard::new()).add(folio);
}

/// Tries to drop what is in `leftovers`.
///
/// # Safety
///
/// `leftovers` must point at those of a CPU, and the caller must be the work that is part of them.
#[export]
pub unsafe extern "C" fn rust_leftovers_try(leftovers: *mut bindings::rust_leftovers) {
    // SAFETY: The caller promises it.
    unsafe { Leftovers::from_raw(leftovers) }.try_all();
}

/// Drops what is in `queue`.
///
/// # Safety
///
/// `queue` must point at that of a CPU, and the caller must be the work that is part of it.
#[export]
pub unsafe extern "C" fn rust_drop_queue_drop(queue: *mut bindings::rust_drop_queue) {
    // SAFETY: The caller promises it.
    unsafe { DropQueue::from_raw(queue).drop_all() };
}
