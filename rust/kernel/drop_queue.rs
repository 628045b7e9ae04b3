// SPDX-License-Identifier: GPL-2.0

//! Folios whose writeback has ended in an interrupt of a CPU, for a task to drop.
//!
//! [`crate::writeback::queue`] decides how they get to the task. They are in the page cache
//! meanwhile: a lookup clears dropbehind because the folio has another user, and a folio that is
//! written to is dropped at the end of its writeback. A queued folio has a reference, which does
//! not prevent drop, truncation, or invalidation for direct I/O. Reclaim, migration,
//! `POSIX_FADV_DONTNEED` and `drop_caches` skip it. So only small folios wait here, and only
//! briefly.
//!
//! C header: [`include/linux/rust_drop.h`](srctree/include/linux/rust_drop.h)

use crate::{
    bindings,
    drop_batch::{
        drop_now,
        DropBatch, //
    },
    folio::Folio,
    interrupts_off::InterruptsOff,
    page::PAGE_SIZE,
    percpu::{
        PerCpu,
        PossibleCpu, //
    },
    sched,
    sync::{
        aref::ARef,
        atomic::{
            Atomic,
            Full,
            Relaxed, //
        }, //
    },
    types::{
        NotThreadSafe,
        Opaque, //
    },
    writeback::{
        queue::{
            small,
            weight,
            Count,
            Queue,
            Slot,
            Todo,
            SOON_MS, //
        },
        together::MOST, //
    }, //
};
use core::{
    marker::PhantomData,
    ptr::{
        null_mut,
        NonNull, //
    },
};

/// A place for a folio: null, or a pointer that owns a reference.
#[repr(transparent)]
struct Place(Atomic<*mut bindings::folio>);

impl Slot for Place {
    type Item = ARef<Folio>;

    /// The place's reference prevents a split of the folio.
    #[inline(always)]
    fn weight(folio: &ARef<Folio>) -> usize {
        weight(folio.size())
    }

    #[inline(always)]
    fn put(&self, folio: ARef<Folio>) -> Result<(), ARef<Folio>> {
        let raw = ARef::into_raw(folio);
        match self.0.cmpxchg(null_mut(), raw.as_ptr().cast(), Full) {
            Ok(_) => Ok(()),
            // SAFETY: The exchange failed, so the reference is still owned here.
            Err(_) => Err(unsafe { ARef::from_raw(raw) }),
        }
    }

    #[inline(always)]
    fn take(&self) -> Option<ARef<Folio>> {
        let raw = NonNull::new(self.0.xchg(null_mut(), Full))?;
        // SAFETY: The place owned the reference, and no longer does.
        Some(unsafe { ARef::from_raw(raw.cast()) })
    }
}

impl Count for Atomic<usize> {
    #[inline(always)]
    fn get(&self) -> usize {
        self.load(Relaxed)
    }

    #[inline(always)]
    fn set(&self, count: usize) {
        self.store(count, Relaxed);
    }
}

const PLACES: usize = bindings::RUST_DROP_QUEUE_NR as usize;
const _: () = assert!(PLACES.is_power_of_two());

/// The queue of a CPU (`struct rust_drop_queue`).
///
/// # Invariants
///
/// - Instances are initialised and never freed. All fields but the work are only accessed in this
///   file, atomically.
/// - Only [`OwnDropQueue`] puts folios in, and only the work takes them out.
#[repr(transparent)]
pub struct DropQueue(Opaque<bindings::rust_drop_queue>);

// SAFETY: An instance is only accessed atomically.
unsafe impl Sync for DropQueue {}

impl DropQueue {
    /// Makes a reference of a C pointer.
    ///
    /// # Safety
    ///
    /// `ptr` must point at the queue of a CPU.
    pub unsafe fn from_raw<'a>(ptr: *mut bindings::rust_drop_queue) -> &'a Self {
        // SAFETY: The caller promises a queue, which is never freed. `Self` is transparent over it.
        unsafe { &*ptr.cast() }
    }

    /// The queues of all CPUs.
    #[inline(always)]
    pub fn per_cpu() -> PerCpu<Self> {
        // SAFETY: C defines one for each possible CPU, zeroed except for the work, which is
        // initialised before any page cache exists. `Self` is transparent over it.
        unsafe { PerCpu::from_raw((&raw mut bindings::rust_drop_queues).cast()) }
    }

    #[inline(always)]
    fn core(&self) -> Queue<'_, Place, Atomic<usize>> {
        let raw = self.0.get();
        // SAFETY: The fields live by the type invariants. Only this function accesses them,
        // atomically. `Place` is transparent over a pointer.
        unsafe {
            let places = &*(&raw const (*raw).places).cast::<[Place; PLACES]>();
            let nr_put = Atomic::from_ptr(&raw mut (*raw).nr_put);
            let nr_taken = Atomic::from_ptr(&raw mut (*raw).nr_taken);
            Queue::new(places, nr_put, nr_taken)
        }
    }

    /// Drops the queued folios, as far as possible. If new folios keep coming, the rest is
    /// deferred.
    ///
    /// Context: a task with interrupts on.
    ///
    /// # Safety
    ///
    /// The caller must be the queue's work, which runs once at a time.
    pub unsafe fn drop_all(&self) {
        for _ in 0..PLACES / MOST {
            if !self.drop_some() {
                return;
            }
            sched::cond_resched();
        }
        self.begin(0, true);
    }

    /// Drops up to one batch of folios. Returns whether the batch was full.
    fn drop_some(&self) -> bool {
        let mut together = DropBatch::per_cpu().of(PossibleCpu::current()).begin();
        for _ in 0..MOST {
            let Some(folio) = self.core().take() else {
                return false;
            };
            drop_now(&folio, &mut together);
        }
        true
    }

    /// Queues the work in `wait` milliseconds, if it is not queued yet, or if `anew`.
    #[inline(always)]
    fn begin(&self, wait: u32, anew: bool) {
        // SAFETY: The work lives by the type invariants, and may be queued in any context.
        unsafe { bindings::rust_drop_begin(&raw mut (*self.0.get()).work, wait, anew) };
    }
}

/// The queue of this CPU, while interrupts are off.
///
/// # Invariants
///
/// No other context puts folios into the queue while a method runs.
#[derive(Clone, Copy)]
pub struct OwnDropQueue<'a> {
    shared: &'a DropQueue,
    _here: PhantomData<NotThreadSafe>,
}

impl<'a> OwnDropQueue<'a> {
    /// The queue of this CPU.
    #[inline(always)]
    pub fn this<I: InterruptsOff>(off: &'a I) -> Self {
        // INVARIANT: Only this CPU puts folios in, and no other context runs on it while interrupts
        // are off.
        Self {
            shared: DropQueue::per_cpu().this(off),
            _here: PhantomData,
        }
    }

    /// Whether there are places for `nr` [`small`] folios, and the folios may be kept from
    /// migration.
    ///
    /// C counterpart: `lru_cache_disabled()`.
    #[inline(always)]
    pub fn has_room(self, nr: usize) -> bool {
        // SAFETY: May be called in any context.
        let are_in_the_way = unsafe { bindings::lru_cache_disabled() };
        let places = nr.saturating_mul(const { weight(small(PAGE_SIZE)) });
        !are_in_the_way && self.shared.core().has_room(places)
    }

    /// Has a folio dropped soon. Returns false if there is no place for it.
    #[inline(always)]
    pub fn queue(self, folio: &Folio) -> bool {
        let Ok(todo) = self.shared.core().put(folio.into()) else {
            return false;
        };
        match todo {
            Todo::Nothing => {}
            Todo::Soon => self.shared.begin(SOON_MS, false),
            Todo::Now => self.shared.begin(0, true),
        }
        true
    }
}
