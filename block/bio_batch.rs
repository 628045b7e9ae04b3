// SPDX-License-Identifier: GPL-2.0

//! Completion of bios in task context: what `bio_endio()`, the worker and the timer of a CPU's
//! batch call.

use core::ptr::NonNull;
use kernel::{
    bindings,
    bio::CompletedBio,
    bio_batch::{
        BioBatch,
        OwnBatch, //
    },
    cpu::CpuId,
    drop_queue::OwnDropQueue,
    interrupts_off::{
        InterruptsDisabled,
        InterruptsSaved, //
    },
    page::PAGE_SIZE,
    percpu::PossibleCpu,
    prelude::*,
    sched,
    writeback::{
        batch::{
            List,
            Taken, //
        },
        queue::{
            small,
            FEW, //
        }, //
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
    // SAFETY: No other guard is dropped while this lives, it is no NMI's, and the batch turns no
    // interrupts on.
    let off = unsafe { InterruptsSaved::new() };
    // SAFETY: The caller gives up a completed bio.
    let bio = unsafe { CompletedBio::from_raw(bio) };
    defer(bio, off);
}

/// Ends `bio` here if that leaves no more to a task than to drop a few small folios, and has a task
/// end it otherwise. A submitter of such folios has other bios ended in interrupts anyway.
///
/// Context: an interrupt, but no NMI.
///
/// # Safety
///
/// `bio` must point at a bio that was completed and not ended, that has a `bi_end_io`, and that the
/// caller gives up.
#[export]
pub unsafe extern "C" fn rust_bio_end_in_interrupt(bio: *mut bindings::bio) {
    // SAFETY: The caller promises a bio.
    let bio = unsafe { NonNull::new_unchecked(bio) };
    // SAFETY: Guards that are made while this lives are dropped before it, it is no NMI's, and what
    // ends a bio in an interrupt turns none on.
    let off = unsafe { InterruptsSaved::new() };
    // SAFETY: The caller gives up a completed bio.
    let bio = unsafe { CompletedBio::from_raw(bio) };
    let nr = bio.nr_dropbehind(FEW, small(PAGE_SIZE));
    if nr > 0 && OwnDropQueue::this(&off).has_room(nr as usize) {
        bio.end_here();
    } else {
        defer(bio, off);
    }
}

/// Adds `bio` to the batch of this CPU.
#[inline(always)]
fn defer(bio: CompletedBio, off: InterruptsSaved) {
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
            // SAFETY: The caller promises that interrupts are on, and the batch turns none on.
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
    // SAFETY: No other guard is dropped while this lives, it is no NMI's, and the batch turns no
    // interrupts on.
    let off = unsafe { InterruptsSaved::new() };
    what(OwnBatch::this(&off));
}

/// The interrupt is over in which this CPU was found not to get on with its batch.
///
/// # Safety
///
/// None is asked for: only C's prototypes make it unsafe.
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
