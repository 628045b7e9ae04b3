// SPDX-License-Identifier: GPL-2.0

//! Bios whose device is done with them.
//!
//! The life of a bio, as far as completion is concerned:
//!
//! | state | owner | here it is |
//! | --- | --- | --- |
//! | submitted | the block layer and the device | not seen |
//! | completed | the context that `bio_endio()` runs in | a [`CompletedBio`] |
//! | queued | the batch of a CPU, or on its way from one CPU to another | in a [`BioList`] |
//! | being ended | the worker of a CPU, or its interrupt | a [`CompletedBio`] again |
//! | ended | its `bi_end_io` function | gone: [`CompletedBio::end`] took it |
//!
//! A [`CompletedBio`] that is dropped, alone or in a [`BioList`], would never be ended, and whoever
//! waits for it would wait for ever. That is reported.
//!
//! C header: [`include/linux/bio.h`](srctree/include/linux/bio.h)

use crate::{
    bindings,
    warn_on,
    writeback::batch::List, //
};
use core::{
    mem::{
        replace,
        ManuallyDrop, //
    },
    ptr::{
        null_mut,
        NonNull, //
    },
};

/// A bio that its device is done with and that is to be ended.
///
/// # Invariants
///
/// The bio is live and owned by this value. It is in no list, was not ended, and has a function to
/// end it.
#[must_use = "somebody waits for the end of the bio"]
pub struct CompletedBio(NonNull<bindings::bio>);

// SAFETY: A bio may be ended in any task, whatever context it was completed in.
unsafe impl Send for CompletedBio {}

impl CompletedBio {
    /// Takes over a bio from C.
    ///
    /// # Safety
    ///
    /// `bio` must point at a bio that was completed and not ended, and that has a `bi_end_io`. The
    /// caller must give it up.
    #[inline(always)]
    pub unsafe fn from_raw(bio: NonNull<bindings::bio>) -> Self {
        // INVARIANT: The caller promises it.
        Self(bio)
    }

    /// Ends the bio: its submitter takes it back.
    ///
    /// Context: a task that may sleep, if the submitter asks for that, and otherwise any but NMI.
    ///
    /// C counterpart: the call of `bi_end_io` at the end of `bio_endio()`.
    #[inline(always)]
    pub fn end(self) {
        let bio = self.into_raw().as_ptr();
        // SAFETY: By the type invariants the bio is live and ours to end, and it has a function for
        // that. As the function owns it from here, nothing touches it after.
        unsafe {
            (*bio).bi_next = null_mut();
            let end_io = (*bio).bi_end_io.unwrap_unchecked();
            end_io(bio);
        }
    }

    /// Ends the bio where it has completed, though it asks for a task.
    ///
    /// Context: any in which its submitter ends bios of ordinary folios, which ask for none.
    #[inline(always)]
    pub fn end_here(self) {
        // SAFETY: By the type invariants the bio is live and ours. The flag goes, so that its
        // function may find for itself that it wants a task.
        unsafe { (*self.0.as_ptr()).bi_flags &= !(1 << bindings::BIO_COMPLETE_IN_TASK) };
        self.end();
    }

    /// How many of the bio's folios are to be dropped. Zero if it has more than `most` folios, or
    /// one of more than `largest` bytes.
    #[inline(always)]
    pub fn nr_dropbehind(&self, most: u32, largest: usize) -> u32 {
        let bio = self.0.as_ptr();
        // SAFETY: By the type invariants the bio is live, and its folios are until it is ended. It
        // has a first one unless it has no vector.
        unsafe {
            // A file system with buffers has a bio for each buffer of a large folio: that is short.
            if (*bio).bi_vcnt == 0
                || bindings::folio_size(bindings::bio_first_folio_all(bio)) > largest
            {
                return 0;
            }
            bindings::rust_bio_nr_dropbehind(bio, most, largest)
        }
    }

    /// Gives the bio up.
    #[inline(always)]
    fn into_raw(self) -> NonNull<bindings::bio> {
        ManuallyDrop::new(self).0
    }
}

impl Drop for CompletedBio {
    fn drop(&mut self) {
        warn_on!(true);
    }
}

/// Completed bios, the oldest first.
///
/// # Invariants
///
/// `head` is null, or the first of a chain of bios by `bi_next` whose last is `tail`. They are live
/// and owned by the list, completed and not ended.
#[repr(C)]
pub struct BioList {
    head: *mut bindings::bio,
    tail: *mut bindings::bio,
}

// SAFETY: As for `CompletedBio`.
unsafe impl Send for BioList {}

impl Default for BioList {
    #[inline(always)]
    fn default() -> Self {
        // INVARIANT: `head` is null.
        Self {
            head: null_mut(),
            tail: null_mut(),
        }
    }
}

impl BioList {
    /// Takes the first bio.
    ///
    /// C counterpart: `bio_list_pop()`.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<CompletedBio> {
        let bio = NonNull::new(self.head)?;
        // INVARIANT: What follows the first is such a chain.
        // SAFETY: By the type invariants the bio is live and ours.
        self.head = unsafe { (*bio.as_ptr()).bi_next };
        // SAFETY: It was the list's, and is in it no more.
        Some(unsafe { CompletedBio::from_raw(bio) })
    }

    /// # Safety
    ///
    /// From `first` to `last` must be such a chain, and the caller must give it up.
    #[inline(always)]
    unsafe fn link(&mut self, first: *mut bindings::bio, last: *mut bindings::bio) {
        if self.head.is_null() {
            self.head = first;
        } else {
            // SAFETY: By the type invariants `tail` is live and ours.
            unsafe { (*self.tail).bi_next = first };
        }
        // INVARIANT: The chain goes on with the caller's, which is this list's from here.
        self.tail = last;
    }
}

impl List for BioList {
    type Item = CompletedBio;

    #[inline(always)]
    fn is_empty(&self) -> bool {
        self.head.is_null()
    }

    #[inline(always)]
    fn first(&self) -> usize {
        self.head as usize
    }

    #[inline(always)]
    fn take(&mut self) -> Self {
        // INVARIANT: The chain is the new list's, and `head` of the old one is null.
        Self {
            head: replace(&mut self.head, null_mut()),
            tail: self.tail,
        }
    }

    /// C counterpart: `bio_list_add()`.
    #[inline(always)]
    fn push(&mut self, bio: CompletedBio) {
        let bio = bio.into_raw().as_ptr();
        // SAFETY: By its type's invariants it was the caller's, and is live: a chain of one.
        unsafe {
            self.link(bio, bio);
            (*bio).bi_next = null_mut();
        }
    }

    /// C counterpart: `bio_list_merge()`.
    #[inline(always)]
    fn append(&mut self, other: Self) {
        let other = ManuallyDrop::new(other);
        if !other.is_empty() {
            // SAFETY: By the type invariants it is such a chain, and `other` is given up.
            unsafe { self.link(other.head, other.tail) };
        }
    }
}

impl Drop for BioList {
    #[inline(always)]
    fn drop(&mut self) {
        warn_on!(!self.is_empty());
    }
}
