// SPDX-License-Identifier: GPL-2.0

//! Completion of bios in task context. `bio_endio()` and the worker call these functions.

use core::{
    mem::ManuallyDrop,
    ptr::NonNull, //
};
use kernel::{
    bindings,
    bio::{
        BioTask,
        CompletedBio, //
    },
    container_of,
    dropbehind::DropRing,
    interrupt::local_interrupt_disable,
    prelude::*, //
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
pub unsafe extern "C" fn bio_task_add(bio: *mut bindings::bio) {
    // SAFETY: The caller gives up a completed bio.
    BioTask::add(unsafe { CompletedBio::from_raw(NonNull::new_unchecked(bio)) });
}

/// Whether `bio` can end in this context, because the only work for a task is to drop a few pages.
/// Submitters of such bios are prepared for that: their other bios end in interrupts, too.
///
/// Context: any but NMI.
///
/// # Safety
///
/// `bio` must point at a bio that has completed, has not been ended, and has a `bi_end_io`.
#[export]
pub unsafe extern "C" fn bio_can_end_here(bio: *mut bindings::bio) -> bool {
    // SAFETY: The caller promises such a bio, and gets it back below.
    let bio = ManuallyDrop::new(unsafe { CompletedBio::from_raw(NonNull::new_unchecked(bio)) });
    let nr = bio.nr_dropbehind(DropRing::FEW) as usize;
    nr > 0 && DropRing::has_room_for_bio(&local_interrupt_disable(), nr)
}

/// Ends the bios queued for `work`.
///
/// # Safety
///
/// The caller must be the work item of a CPU's `bio_task`, which `work` points at.
#[export]
pub unsafe extern "C" fn bio_task_run(work: *mut bindings::work_struct) {
    // SAFETY: The caller promises a CPU's storage, which is never freed.
    let task = unsafe { BioTask::from_raw(container_of!(work, bindings::bio_task, work)) };
    task.end_all();
}
