// SPDX-License-Identifier: GPL-2.0

//! Completion of bios in task context: what `bio_endio()`, the workers and the watch of a CPU's
//! batch call.

use core::ptr::NonNull;
use kernel::{
    bindings,
    bio::{
        BioBatch,
        CompletedBio,
        Progress, //
    },
    percpu::CpuPinned,
    prelude::*,
    sched, //
};

/// How long a worker drains before it lets other work have its turn, in jiffies.
const LONG_RUN: usize = 2;

/// Has a task end `bio`, soon.
///
/// The task is this CPU's worker, or that of another CPU if it is sooner: where an interrupt finds
/// the CPU with a real-time task.
///
/// Context: any.
///
/// # Safety
///
/// `bio` must point at a bio that was completed and not ended, and that the caller gives up.
#[export]
pub unsafe extern "C" fn rust_bio_complete_in_task(bio: *mut bindings::bio) {
    let Some(bio) = NonNull::new(bio) else {
        return;
    };
    let pinned = CpuPinned::new();
    let batch = BioBatch::per_cpu().this(&pinned);
    // SAFETY: The caller gives up a completed bio.
    if !batch.add(unsafe { CompletedBio::from_raw(bio) }) {
        return;
    }
    batch.queue();
    batch.watch();
    if sched::interrupted_real_time() {
        batch.rescue();
    }
}

/// Ends the bios of `batch`. Returns true if it stopped because it took long: there may be more.
///
/// # Safety
///
/// `batch` must point at a CPU's batch.
#[export]
pub unsafe extern "C" fn rust_bio_batch_drain(batch: *mut bindings::rust_bio_batch) -> bool {
    // SAFETY: The caller promises a batch, which is never freed.
    let batch = unsafe { BioBatch::from_raw(batch) };
    let start = sched::jiffies();
    while let Some(bio) = batch.pop() {
        bio.end();
        if sched::jiffies().wrapping_sub(start) > LONG_RUN {
            return true;
        }
        sched::cond_resched();
    }
    false
}

/// Has another CPU drain `batch` if its worker did not get on since the last look.
///
/// Context: the batch's timer.
///
/// # Safety
///
/// `batch` must point at a CPU's batch.
#[export]
pub unsafe extern "C" fn rust_bio_batch_look(batch: *mut bindings::rust_bio_batch) {
    // SAFETY: The caller promises a batch, which is never freed.
    let batch = unsafe { BioBatch::from_raw(batch) };
    match batch.look() {
        Progress::Empty => return,
        Progress::Made => {}
        Progress::None => batch.rescue(),
    }
    batch.watch();
}
