// SPDX-License-Identifier: GPL-2.0

//! Completion of bios in task context: what `bio_endio()`, the worker and the timers of a CPU's
//! batch call, and who waits for writeback.

use core::{
    mem::forget,
    ptr::NonNull, //
};
use kernel::{
    bindings,
    bio::CompletedBio,
    bio_batch::{
        BioBatch,
        OwnBatch,
        WritebackWait, //
    },
    cpu::CpuId,
    interrupts_off::{
        InterruptsDisabled,
        InterruptsSaved, //
    },
    percpu::PossibleCpu,
    prelude::*,
    sched,
    writeback::batch::{
        List,
        Taken, //
    }, //
};

/// Has a task end `bio`, soon.
///
/// Context: any but NMI.
///
/// # Safety
///
/// `bio` must point at a bio that was completed and not ended, that has a `bi_end_io`, and that the
/// caller gives up.
#[export]
pub unsafe extern "C" fn rust_bio_complete_in_task(bio: *mut bindings::bio) {
    // SAFETY: The caller promises a bio.
    let bio = unsafe { NonNull::new_unchecked(bio) };
    // SAFETY: No other guard is dropped while this lives, and it is no NMI's.
    let off = unsafe { InterruptsSaved::new() };
    // SAFETY: The caller gives up a completed bio.
    let bio = unsafe { CompletedBio::from_raw(bio) };
    if let Err(bio) = OwnBatch::this(&off).join(bio) {
        add_first(bio, off);
    }
}

/// Apart, so that to join others costs no more than that.
#[inline(never)]
fn add_first(bio: CompletedBio, off: InterruptsSaved) {
    OwnBatch::this(&off).add(bio);
}

/// The worker of a CPU: ends the bios of its batch. Returns true if it stopped because it took
/// long, and is to be queued again.
///
/// # Safety
///
/// Interrupts must be on, and the caller must be allowed to sleep.
#[export]
pub unsafe extern "C" fn rust_bio_batch_work() -> bool {
    loop {
        let taken = {
            // SAFETY: The caller promises that interrupts are on.
            let off = unsafe { InterruptsDisabled::new() };
            OwnBatch::this(&off).take()
        };
        let mut bios = match taken {
            Taken::Some(bios) => bios,
            Taken::None => return false,
            Taken::Rest => return true,
        };
        while let Some(bio) = bios.pop() {
            bio.end();
            sched::cond_resched();
        }
    }
}

/// Does something with the batch of this CPU, for C: which calls none of this in an NMI.
#[inline(always)]
fn on_this_cpu(what: impl FnOnce(OwnBatch<'_>)) {
    // SAFETY: No other guard is dropped while this lives, and it is no NMI's.
    let off = unsafe { InterruptsSaved::new() };
    what(OwnBatch::this(&off));
}

/// The time for which this CPU gathers is over.
///
/// # Safety
///
/// None is asked for: only C's prototypes make it unsafe. So with those below that say no more.
#[export]
pub unsafe extern "C" fn rust_bio_batch_gathered() {
    on_this_cpu(|own| own.gathered());
}

/// The interrupt is over in which this CPU was found not to get on with its batch.
///
/// # Safety
///
/// None is asked for.
#[export]
pub unsafe extern "C" fn rust_bio_batch_depart() {
    on_this_cpu(|own| own.depart());
}

/// Looks after the worker of this CPU.
///
/// # Safety
///
/// None is asked for.
#[export]
pub unsafe extern "C" fn rust_bio_batch_look() {
    on_this_cpu(|own| own.look());
}

/// Takes over what the CPU of `from` has sent to this one.
///
/// # Safety
///
/// `from` must point at a CPU's batch, and this must be the call that it has asked for.
#[export]
pub unsafe extern "C" fn rust_bio_batch_arrived(from: *mut bindings::rust_bio_batch) {
    on_this_cpu(|own| {
        // SAFETY: The caller promises a batch that has sent something here.
        own.receive(unsafe { BioBatch::from_raw(from).arrived() });
    });
}

/// Takes over what `cpu` has left.
///
/// # Safety
///
/// `cpu` must be off line and stay so, or be this one, and nobody else must call this for it.
#[export]
pub unsafe extern "C" fn rust_bio_batch_retire(cpu: u32) {
    let Some(cpu) = CpuId::from_u32(cpu).and_then(PossibleCpu::new) else {
        return;
    };
    on_this_cpu(|own| {
        // SAFETY: The caller promises that the CPU is gone, or interrupts are off on it.
        let bios = unsafe { OwnBatch::retire(cpu) };
        if !bios.is_empty() {
            own.receive(bios);
        }
    });
}

/// A task begins to wait for writeback of a dropbehind folio.
///
/// Context: a task that may sleep.
///
/// # Safety
///
/// None is asked for.
#[export]
pub unsafe extern "C" fn rust_writeback_wait_begin() {
    forget(WritebackWait::begin());
}

/// The wait is over.
///
/// # Safety
///
/// The caller must have begun a wait, and ends it once.
#[export]
pub unsafe extern "C" fn rust_writeback_wait_end() {
    // SAFETY: The caller has begun it, where it was forgotten.
    drop(unsafe { WritebackWait::taken_up() });
}
