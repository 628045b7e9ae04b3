// SPDX-License-Identifier: GPL-2.0

//! Bios whose device is done with them.
//!
//! The life of a bio, as far as completion is concerned:
//!
//! | state | owner | here it is |
//! | --- | --- | --- |
//! | submitted | the block layer and the device | not seen |
//! | completed | the context that `bio_endio()` runs in | a [`CompletedBio`] |
//! | queued | the batch of a CPU | in a [`BioBatch`] |
//! | being ended | the drainer of the batch | a [`CompletedBio`] again |
//! | ended | its `bi_end_io` function | gone: [`CompletedBio::end`] took it |
//!
//! A [`CompletedBio`] that is dropped would never be ended, and whoever waits for it would wait for
//! ever. That is reported.
//!
//! C headers: [`include/linux/bio.h`](srctree/include/linux/bio.h),
//! [`include/linux/rust_bio_batch.h`](srctree/include/linux/rust_bio_batch.h)

use crate::{
    bindings,
    percpu::{
        CpuPinned,
        PerCpu, //
    },
    sync::atomic::{
        Acquire,
        Atomic,
        Full,
        Relaxed,
        Release, //
    },
    types::Opaque,
    warn_on,
    writeback::batch, //
};
use core::{
    hint::spin_loop,
    mem::ManuallyDrop,
    ptr::NonNull, //
};

/// A bio that its device is done with and that is to be ended.
///
/// # Invariants
///
/// The bio is live and owned by this value. It is in no list, and was not ended.
#[must_use = "somebody waits for the end of the bio"]
pub struct CompletedBio(NonNull<bindings::bio>);

// SAFETY: A bio may be ended in any task, whatever context it was completed in.
unsafe impl Send for CompletedBio {}

impl CompletedBio {
    /// Takes over a bio from C.
    ///
    /// # Safety
    ///
    /// `bio` must point at a bio that was completed and not ended, and the caller must give it up.
    #[inline(always)]
    pub unsafe fn from_raw(bio: NonNull<bindings::bio>) -> Self {
        // INVARIANT: The caller promises it.
        Self(bio)
    }

    /// Ends the bio: its submitter takes it back.
    ///
    /// Context: as the submitter asked for: a task that may sleep.
    ///
    /// C counterpart: the call of `bi_end_io` at the end of `bio_endio()`.
    #[inline(always)]
    pub fn end(self) {
        let bio = ManuallyDrop::new(self).0.as_ptr();
        // SAFETY: By the type invariants the bio is live and ours to end. As the function owns it
        // from here, nothing touches it after.
        unsafe {
            (*bio).bi_next = core::ptr::null_mut();
            if let Some(end_io) = (*bio).bi_end_io {
                end_io(bio);
            }
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

/// What the head of the taken is while somebody holds its lock: no bio is there.
const LOCKED: usize = 1;

/// The completed bios of one CPU that wait for a task to end them (`struct rust_bio_batch`).
///
/// # Invariants
///
/// - Instances are initialised and never freed.
/// - The bios of both lists are live and owned by the batch; only methods of this type access the
///   lists.
#[repr(transparent)]
pub struct BioBatch(Opaque<bindings::rust_bio_batch>);

// SAFETY: All fields that the methods access are accessed atomically.
unsafe impl Sync for BioBatch {}

/// What somebody has to do for a batch, after it was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Nothing: the batch is empty.
    Empty,
    /// Its worker gets on.
    Made,
    /// Its worker has not ended anything since the last look.
    None,
}

impl BioBatch {
    /// Makes a reference of a pointer that C hands over.
    ///
    /// # Safety
    ///
    /// `ptr` must point at a batch that is initialised and not freed for `'a`.
    #[inline(always)]
    pub unsafe fn from_raw<'a>(ptr: *mut bindings::rust_bio_batch) -> &'a Self {
        // SAFETY: The caller promises a live batch for `'a`, and `Self` is transparent over it.
        unsafe { &*ptr.cast() }
    }

    /// The batches of all CPUs.
    #[inline(always)]
    pub fn per_cpu() -> PerCpu<Self> {
        // SAFETY: C defines a batch for each possible CPU, all zeroes, which is two empty lists;
        // `Self` is transparent over it.
        unsafe { PerCpu::from_raw(bindings::rust_bio_batches.cast()) }
    }

    /// The pointer that C knows the batch by.
    #[inline(always)]
    pub fn as_raw(&self) -> *mut bindings::rust_bio_batch {
        self.0.get()
    }

    #[inline(always)]
    fn newest(&self) -> &Atomic<usize> {
        // SAFETY: The batch lives by the type invariants. The field is a pointer, as large as a
        // `usize`, and is only accessed through this atomic.
        unsafe { Atomic::from_ptr((&raw mut (*self.as_raw()).newest).cast()) }
    }

    #[inline(always)]
    fn taken(&self) -> &Atomic<usize> {
        // SAFETY: As for `newest()`.
        unsafe { Atomic::from_ptr((&raw mut (*self.as_raw()).taken).cast()) }
    }

    #[inline(always)]
    fn nr_popped(&self) -> &Atomic<usize> {
        // SAFETY: As for `newest()`; the field is an `unsigned long`.
        unsafe { Atomic::from_ptr((&raw mut (*self.as_raw()).nr_popped).cast()) }
    }

    #[inline(always)]
    fn nr_seen(&self) -> &Atomic<usize> {
        // SAFETY: As for `newest()`; the field is an `unsigned long`.
        unsafe { Atomic::from_ptr((&raw mut (*self.as_raw()).nr_seen).cast()) }
    }

    /// Adds a bio, and says whether the caller has to [`queue`](Self::queue) a worker or
    /// [`rescue`](Self::rescue) the batch now.
    ///
    /// Context: any, on the batch's CPU.
    #[inline(always)]
    pub fn add(&self, bio: CompletedBio) -> bool {
        batch::add(self, bio.into_raw())
    }

    /// Takes the bio that was added first.
    ///
    /// Context: a task.
    #[inline(always)]
    pub fn pop(&self) -> Option<CompletedBio> {
        if self.is_empty() {
            return None;
        }
        let _pinned = CpuPinned::new();
        let bio = batch::pop(self)?;
        // Two drainers may count as one: who looks only wants to see it change.
        let popped = self.nr_popped().load(Relaxed).wrapping_add(1);
        self.nr_popped().store(popped, Relaxed);
        // SAFETY: By the type invariants it was the batch's; it is in neither list any more.
        Some(unsafe { CompletedBio::from_raw(bio) })
    }

    /// Whether no bio waits. One may be added at any time.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        // Who adds to an empty batch has a worker queued. Of who takes what was added, the lock is
        // seen if the taking is: hence the order.
        self.newest().load(Acquire) == 0 && self.taken().load(Relaxed) == 0
    }

    /// What drainers have done since the last look.
    ///
    /// Context: one at a time, the batch's watch.
    pub fn look(&self) -> Progress {
        let popped = self.nr_popped().load(Relaxed);
        let seen = self.nr_seen().load(Relaxed);
        self.nr_seen().store(popped, Relaxed);
        if self.is_empty() {
            Progress::Empty
        } else if popped != seen {
            Progress::Made
        } else {
            Progress::None
        }
    }

    /// Queues the worker of this CPU.
    ///
    /// Context: any that stays on its CPU.
    ///
    /// C counterpart: `queue_work()`.
    #[inline(always)]
    pub fn queue(&self) {
        // SAFETY: The batch lives by the type invariants, and its work with it.
        unsafe { bindings::rust_bio_batch_queue(self.as_raw()) };
    }

    /// Has the batch drained on any CPU.
    ///
    /// Context: any.
    #[inline(always)]
    pub fn rescue(&self) {
        // SAFETY: The batch lives by the type invariants, and its work with it.
        unsafe { bindings::rust_bio_batch_rescue(self.as_raw()) };
    }

    /// Has somebody [`look`](Self::look) at the batch in a tick's time, if nobody is to yet.
    ///
    /// Context: any that stays on its CPU.
    #[inline(always)]
    pub fn watch(&self) {
        // SAFETY: The batch lives by the type invariants, and its timer with it.
        unsafe { bindings::rust_bio_batch_watch(self.as_raw()) };
    }
}

fn to_node(value: usize) -> Option<NonNull<bindings::bio>> {
    NonNull::new(value as *mut bindings::bio)
}

fn from_node(node: Option<NonNull<bindings::bio>>) -> usize {
    node.map_or(0, |node| node.as_ptr() as usize)
}

impl batch::Batch for BioBatch {
    type Node = NonNull<bindings::bio>;

    #[inline(always)]
    fn next(&self, node: Self::Node) -> Option<Self::Node> {
        // SAFETY: The protocol asks for the next of bios that the caller has taken, or that stand
        // in the list whose lock it holds: they are live and nobody writes to them.
        NonNull::new(unsafe { (*node.as_ptr()).bi_next })
    }

    #[inline(always)]
    fn set_next(&self, node: Self::Node, next: Option<Self::Node>) {
        let next = next.map_or(core::ptr::null_mut(), NonNull::as_ptr);
        // SAFETY: The protocol sets the next of bios that nobody else sees.
        unsafe { (*node.as_ptr()).bi_next = next };
    }

    #[inline(always)]
    fn newest(&self) -> Option<Self::Node> {
        to_node(BioBatch::newest(self).load(Relaxed))
    }

    #[inline(always)]
    fn replace_newest(
        &self,
        old: Option<Self::Node>,
        new: Self::Node,
    ) -> Result<(), Option<Self::Node>> {
        BioBatch::newest(self)
            .cmpxchg(from_node(old), new.as_ptr() as usize, Full)
            .map(drop)
            .map_err(to_node)
    }

    #[inline(always)]
    fn take_added(&self) -> Option<Self::Node> {
        to_node(BioBatch::newest(self).xchg(0, Full))
    }

    #[inline(always)]
    fn lock_taken(&self) -> Option<Self::Node> {
        loop {
            match self.taken().xchg(LOCKED, Acquire) {
                LOCKED => spin_loop(),
                value => return to_node(value),
            }
        }
    }

    #[inline(always)]
    fn unlock_taken(&self, oldest: Option<Self::Node>) {
        self.taken().store(from_node(oldest), Release);
    }
}
