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
//! | taken | the worker of a CPU | in a [`BioList`] |
//! | being ended | the worker of a CPU, or its interrupt | a [`CompletedBio`] again |
//! | ended | its `bi_end_io` function | none: [`CompletedBio::end`] took it |
//!
//! A [`CompletedBio`] that is dropped, alone or in a [`BioList`], would never be ended, and its
//! waiter would wait forever. Such a drop triggers a warning.
//!
//! C header: [`include/linux/bio.h`](srctree/include/linux/bio.h)

use crate::{
    bindings,
    percpu::PerCpu,
    sync::atomic::{
        Acquire,
        Atomic,
        Relaxed,
        Release, //
    },
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
#[must_use = "somebody waits for the end of the bio"]
pub struct CompletedBio(NonNull<bindings::bio>);

// SAFETY: A bio may be ended in any task, whatever context it was completed in.
unsafe impl Send for CompletedBio {}

impl CompletedBio {
    /// Takes over a bio from C.
    ///
    /// # Safety
    ///
    /// `bio` must point at a bio that is completed and not ended, and has a `bi_end_io`, as every
    /// bio has that asks for a task. The caller must give it up.
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

/// Completed bios that a worker has taken, the oldest first.
///
/// # Invariants
///
/// `first` is null, or the first of a chain of bios by `bi_next`. The list owns the bios, which are
/// live, completed and not ended.
pub struct BioList {
    first: *mut bindings::bio,
}

impl BioList {
    /// Takes the first bio.
    ///
    /// C counterpart: `bio_list_pop()`.
    #[inline]
    pub fn pop(&mut self) -> Option<CompletedBio> {
        let bio = NonNull::new(self.first)?;
        // INVARIANT: The bios after the first are a chain by `bi_next`, too.
        // SAFETY: By the type invariants the list owns the bio, which is live.
        self.first = unsafe { (*bio.as_ptr()).bi_next };
        // SAFETY: The list owned the bio, and no longer does.
        Some(unsafe { CompletedBio::from_raw(bio) })
    }
}

impl Drop for BioList {
    #[inline]
    fn drop(&mut self) {
        warn_on!(!self.first.is_null());
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

// SAFETY: An instance is only accessed atomically.
unsafe impl Sync for BioTask {}

impl BioTask {
    /// Makes a reference of a C pointer.
    ///
    /// # Safety
    ///
    /// `ptr` must point at a CPU's share, or another instance that is never freed.
    #[inline]
    pub unsafe fn from_raw<'a>(ptr: *mut bindings::bio_task) -> &'a Self {
        // SAFETY: By that promise the instance is never freed; `Self` is transparent over it.
        unsafe { &*ptr.cast() }
    }

    /// The instances of all CPUs.
    #[inline]
    pub fn per_cpu() -> PerCpu<Self> {
        // SAFETY: C defines one for each possible CPU, without a bio, and initialises the work
        // before any bio completes. `Self` is transparent over it.
        unsafe { PerCpu::from_raw((&raw mut bindings::bio_tasks).cast()) }
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
        let this = Self::per_cpu().of_any();
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

    /// Takes all waiting bios.
    ///
    /// Context: any. Only one caller at a time may end bios, to keep their order.
    #[inline]
    pub fn take(&self) -> BioList {
        let mut last = self.last().xchg(null_mut(), Acquire);
        let mut first = null_mut();
        while !last.is_null() {
            // SAFETY: By the type invariants the bio is live, and this value owned it.
            let before = unsafe { (*last).bi_next };
            // SAFETY: As above.
            unsafe { (*last).bi_next = first };
            first = last;
            last = before;
        }
        // INVARIANT: The reversed chain is linked from the oldest bio on.
        BioList { first }
    }
}
