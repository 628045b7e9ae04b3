// SPDX-License-Identifier: GPL-2.0

//! Bios that their device has completed.
//!
//! The life of a bio, as far as completion is concerned:
//!
//! | state | owner | type |
//! | --- | --- | --- |
//! | submitted | the block layer and the device | none |
//! | completed | the context that `bio_endio()` runs in | a [`CompletedBio`] |
//! | queued | a CPU's [`BioTask`] | a link in the [`BioTask`] |
//! | being ended | the worker | a [`CompletedBio`] again |
//! | ended | its `bi_end_io` function | none: [`CompletedBio::end`] took it |
//!
//! A bio of few pages is not queued: `bio_endio()` ends it in C.
//!
//! A [`CompletedBio`] that is dropped would never be ended, and its waiter would wait forever. Such
//! a drop triggers a warning.
//!
//! C header: [`include/linux/bio.h`](srctree/include/linux/bio.h)

use crate::{
    bindings,
    sched::cond_resched,
    sync::atomic::{
        Acquire,
        Atomic,
        Relaxed,
        Release, //
    },
    task::might_sleep,
    types::Opaque,
    warn_on, //
};
use core::{
    mem::ManuallyDrop,
    ptr::{
        null_mut,
        NonNull, //
    },
};

/// A bio that its device has completed and that is to be ended.
///
/// # Invariants
///
/// The bio is live and owned by this value. It is in no list, is not ended, and has a function to
/// end it. Its folios are live until it is ended.
#[must_use = "a bio that is never ended hangs its waiter"]
pub struct CompletedBio(NonNull<bindings::bio>);

impl CompletedBio {
    /// Takes over a bio from C.
    ///
    /// # Safety
    ///
    /// `bio` must point at a bio that is completed and not ended, is in no list, and has a
    /// `bi_end_io`, as every bio has that asks for a task. Its folios must stay live until it is
    /// ended. The caller must give it up.
    #[inline]
    pub unsafe fn from_raw(bio: NonNull<bindings::bio>) -> Self {
        // INVARIANT: The caller promises it.
        Self(bio)
    }

    /// Ends the bio and returns it to its submitter.
    ///
    /// Context: a task that may sleep, if the submitter requests that, and otherwise any but NMI.
    ///
    /// C counterpart: the call of `bi_end_io` at the end of `bio_endio()`.
    #[inline]
    pub fn end(self) {
        let bio = self.into_raw().as_ptr();
        // SAFETY: By the type invariants the bio is live, owned by this value, and has an end
        // function. The function owns it from here, and it is not accessed afterwards.
        unsafe {
            (*bio).bi_next = null_mut();
            let end_io = (*bio).bi_end_io.unwrap_unchecked();
            end_io(bio);
        }
    }

    /// How many of the bio's folios are to be dropped. Zero if it has more than `most` folios, or a
    /// folio of more than one page.
    #[inline]
    pub fn nr_dropbehind(&self, most: u32) -> u32 {
        // SAFETY: By the type invariants the bio and its folios are live.
        unsafe { bindings::bio_nr_dropbehind(self.0.as_ptr(), most) }
    }

    /// Gives the bio up.
    fn into_raw(self) -> NonNull<bindings::bio> {
        ManuallyDrop::new(self).0
    }
}

impl Drop for CompletedBio {
    fn drop(&mut self) {
        warn_on!(true);
    }
}

/// The completed bios of a CPU that wait for a task to end them (`struct bio_task`).
///
/// The context that adds the first bio starts the worker, which takes bios until none is left.
///
/// # Invariants
///
/// - Instances are initialised and never freed.
/// - `last` is null, or the last added bio of a chain by `bi_next`, in which each bio was added
///   before the bio that points at it. This value owns the bios, which are live, completed and not
///   ended. The field is only accessed in this file, atomically.
#[repr(transparent)]
pub struct BioTask(Opaque<bindings::bio_task>);

// SAFETY: `last` is only accessed atomically. The work is only given to the workqueue, which
// synchronises its users.
unsafe impl Sync for BioTask {}

impl BioTask {
    /// Makes a reference of a C pointer.
    ///
    /// # Safety
    ///
    /// `ptr` must point at the instance of a CPU, or another one that is never freed.
    #[inline]
    pub unsafe fn from_raw<'a>(ptr: *mut bindings::bio_task) -> &'a Self {
        // SAFETY: By that promise the instance is never freed; `Self` is transparent over it.
        unsafe { &*ptr.cast() }
    }

    /// The instance of the CPU that the context runs on at this moment.
    ///
    /// Context: any.
    #[inline]
    pub fn of_this_cpu<'a>() -> &'a Self {
        // SAFETY: C defines one for each possible CPU, without a bio, and initialises the work
        // before any bio completes.
        unsafe {
            let tasks = &raw mut bindings::bio_tasks;
            Self::from_raw(bindings::raw_cpu_ptr(tasks.cast()).cast())
        }
    }

    fn last(&self) -> &Atomic<*mut bindings::bio> {
        // SAFETY: The field lives by the type invariants, and only this function accesses it.
        unsafe { Atomic::from_ptr(&raw mut (*self.0.get()).last) }
    }

    /// Has a task end `bio`, in a batch with other bios that complete on this CPU. Any CPU's
    /// instance would do.
    ///
    /// Context: any.
    ///
    /// C counterpart: `__bio_complete_in_task()`.
    #[inline]
    pub fn add(bio: CompletedBio) {
        let this = Self::of_this_cpu();
        let bio = bio.into_raw().as_ptr();
        let mut last = this.last().load(Relaxed);
        loop {
            // SAFETY: The caller owned the bio. It is live, and no other context knows it.
            unsafe { (*bio).bi_next = last };
            // INVARIANT: The bio was added after `last`. This value owns it from here. The release
            // makes the writes to the bio visible to the worker.
            match this.last().cmpxchg(last, bio, Release) {
                Ok(_) => break,
                Err(now) => last = now,
            }
        }
        if last.is_null() {
            // SAFETY: The work lives by the type invariants, and may be queued in any context.
            unsafe { bindings::bio_task_begin(this.0.get()) };
        }
    }

    /// Ends the bios that wait, the oldest first, until none is left.
    ///
    /// Context: a task that may sleep. Only one caller at a time, to keep the bios' order.
    ///
    /// C counterpart: `bio_complete_work_fn()`.
    #[inline]
    pub fn end_all(&self) {
        might_sleep();
        loop {
            let mut last = self.last().xchg(null_mut(), Acquire);
            if last.is_null() {
                return;
            }
            let mut first = null_mut();
            while !last.is_null() {
                // SAFETY: By the type invariants the bio is live, and this value owned it.
                let before = unsafe { (*last).bi_next };
                // SAFETY: As above.
                unsafe { (*last).bi_next = first };
                first = last;
                last = before;
            }
            while let Some(bio) = NonNull::new(first) {
                // SAFETY: This value owned the bio, and gives it up. The reversed chain is linked
                // from the oldest bio on.
                let bio = unsafe {
                    first = (*bio.as_ptr()).bi_next;
                    CompletedBio::from_raw(bio)
                };
                bio.end();
                if !first.is_null() {
                    cond_resched();
                }
            }
        }
    }
}
