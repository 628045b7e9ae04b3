// SPDX-License-Identifier: GPL-2.0

//! Completion of bios in task context. `bio_endio()` and the worker call these functions.

use core::ptr::NonNull;
use kernel::{
    bindings,
    bio::{
        BioTask,
        CompletedBio, //
    },
    drop_queue::OwnDropQueue,
    interrupts_off::InterruptsSaved,
    page::PAGE_SIZE,
    prelude::*,
    sched,
    writeback::queue::{
        small,
        FEW, //
    }, //
};

/// Queues `bio` for the worker, which ends it in a task.
///
/// Context: any.
///
/// # Safety
///
/// `bio` must point at a bio that has completed, has not been ended, and has a `bi_end_io`. The
/// caller must give it up.
#[export]
pub unsafe extern "C" fn rust_bio_complete_in_task(bio: *mut bindings::bio) {
    // SAFETY: The caller gives up a completed bio.
    BioTask::add(unsafe { CompletedBio::from_raw(NonNull::new_unchecked(bio)) });
}

/// Ends `bio` here if the only work for a task is to drop a few small folios. Queues it for the
/// worker otherwise. Submitters of such folios already have other bios ended in interrupts.
///
/// Context: an interrupt, but not NMI.
///
/// # Safety
///
/// `bio` must point at a bio that has completed, has not been ended, and has a `bi_end_io`. The
/// caller must give it up.
#[export]
pub unsafe extern "C" fn rust_bio_end_in_interrupt(bio: *mut bindings::bio) {
    // SAFETY: The caller gives up a completed bio.
    let bio = unsafe { CompletedBio::from_raw(NonNull::new_unchecked(bio)) };
    let nr = bio.nr_dropbehind(FEW, small(PAGE_SIZE)) as usize;
    // SAFETY: No other guard is made while this one lives, and the context is not NMI.
    let has_room = || OwnDropQueue::this(&unsafe { InterruptsSaved::new() }).has_room(nr);
    if nr > 0 && has_room() {
        bio.end_here();
    } else {
        BioTask::add(bio);
    }
}

/// Ends the bios queued in `task`.
///
/// # Safety
///
/// `task` must point at the `rust_bio_task` of a CPU. The caller must be the work item in it.
#[export]
pub unsafe extern "C" fn rust_bio_task_work(task: *mut bindings::rust_bio_task) {
    // SAFETY: The caller promises a CPU's storage, which is never freed.
    let task = unsafe { BioTask::from_raw(task) };
    loop {
        let mut bios = task.take();
        let Some(first) = bios.pop() else {
            return;
        };
        first.end();
        while let Some(bio) = bios.pop() {
            bio.end();
            sched::cond_resched();
        }
    }
}
