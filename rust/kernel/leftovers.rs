// SPDX-License-Identifier: GPL-2.0

//! Folios that a CPU has to drop later.
//!
//! [`crate::writeback::later`] decides when they are retried.
//!
//! C header: [`include/linux/rust_drop.h`](srctree/include/linux/rust_drop.h)

use crate::{
    bindings,
    folio::Folio,
    percpu::PerCpu,
    sched,
    sync::{
        aref::ARef,
        atomic::{
            Acquire,
            Atomic,
            Full,
            Relaxed,
            Release, //
        },
        barrier::smp_mb, //
    },
    time::msecs_to_jiffies,
    types::Opaque,
    writeback::later::{
        keep,
        try_all,
        wait,
        Item,
        Place,
        AT_LEISURE_MS,
        TRIES, //
    }, //
};
use core::{
    ptr::{
        self,
        null_mut,
        NonNull, //
    },
    slice, //
};

impl Item for ARef<Folio> {
    /// Drops the folio if its lock is free. A folio that is dirty or under writeback by now is
    /// dropped at the end of that.
    fn try_to_do(&self, last: bool) -> bool {
        if let Some(guard) = self.try_lock() {
            if last || !guard.is_appended_to() {
                guard.end_dropbehind();
            }
        }
        !self.test_dropbehind() || self.test_dirty() || self.test_writeback()
    }
}

/// A place for one folio (`struct rust_leftover`).
///
/// # Invariants
///
/// - Instances are initialised and never freed, and only accessed in this file.
/// - `folio` is null, or the place owns a reference on that folio.
#[repr(transparent)]
struct Leftover(Opaque<bindings::rust_leftover>);

// SAFETY: An instance is only accessed atomically.
unsafe impl Sync for Leftover {}

impl Leftover {
    fn folio(&self) -> &Atomic<*mut bindings::folio> {
        // SAFETY: The place lives by the type invariants; only this function accesses the field.
        unsafe { Atomic::from_ptr(&raw mut (*self.0.get()).folio) }
    }

    fn since(&self) -> &Atomic<usize> {
        // SAFETY: As above.
        unsafe { Atomic::from_ptr(&raw mut (*self.0.get()).since) }
    }
}

impl Place for Leftover {
    type Item = ARef<Folio>;

    fn put(&self, folio: ARef<Folio>, since: usize) -> Result<(), ARef<Folio>> {
        if !self.folio().load(Relaxed).is_null() {
            return Err(folio);
        }
        // Stored before the folio. If two contexts use this place concurrently, one of them wins,
        // and may get the other's time.
        self.since().store(since, Relaxed);
        let raw = ARef::into_raw(folio);
        // INVARIANT: The place owns the reference from here.
        match self
            .folio()
            .cmpxchg(null_mut(), raw.as_ptr().cast(), Release)
        {
            Ok(_) => Ok(()),
            // SAFETY: The exchange failed, so the reference is still owned here.
            Err(_) => Err(unsafe { ARef::from_raw(raw) }),
        }
    }

    fn has(&self, folio: &ARef<Folio>) -> bool {
        ptr::eq(self.folio().load(Relaxed), folio.as_raw())
    }

    fn take(&self) -> Option<(ARef<Folio>, usize)> {
        if self.folio().load(Acquire).is_null() {
            return None;
        }
        let since = self.since().load(Relaxed);
        // INVARIANT: The place no longer owns the reference.
        let raw = NonNull::new(self.folio().xchg(null_mut(), Full))?;
        // SAFETY: By the type invariants the place owned the reference, and no longer does.
        Some((unsafe { ARef::from_raw(raw.cast()) }, since))
    }
}

/// Keeps a folio in one of these places. If the work takes the folio concurrently, either the work
/// sees the folio as the caller has seen it, or the caller does not find it in a place.
fn keep_in(places: &[Leftover], folio: &Folio) -> Result<bool, ARef<Folio>> {
    smp_mb(Full);
    keep(places, folio.into(), sched::jiffies())
}

/// The folios that a CPU has to drop later (`struct rust_leftovers`).
///
/// # Invariants
///
/// Instances are initialised and never freed, and only accessed in this file.
#[repr(transparent)]
pub struct Leftovers(Opaque<bindings::rust_leftovers>);

// SAFETY: An instance is only accessed atomically.
unsafe impl Sync for Leftovers {}

impl Leftovers {
    /// Makes a reference of a C pointer.
    ///
    /// # Safety
    ///
    /// `ptr` must point at the leftovers of a CPU.
    pub unsafe fn from_raw<'a>(ptr: *mut bindings::rust_leftovers) -> &'a Self {
        // SAFETY: By that promise they are never freed; `Self` is transparent over them.
        unsafe { &*ptr.cast() }
    }

    /// The leftovers of all CPUs.
    pub fn per_cpu() -> PerCpu<Self> {
        // SAFETY: C defines them for each possible CPU, zeroed except for the work, which is
        // initialised before any page cache exists. `Self` is transparent over them.
        unsafe { PerCpu::from_raw((&raw mut bindings::rust_leftovers).cast()) }
    }

    fn places(&self) -> &[Leftover] {
        // SAFETY: The places live by the type invariants; `Leftover` is transparent over one.
        unsafe {
            let places = &raw mut (*self.0.get()).places;
            slice::from_raw_parts(places.cast(), bindings::RUST_LEFTOVERS_NR as usize)
        }
    }

    fn tries(&self) -> &Atomic<u32> {
        // SAFETY: The field lives by the type invariants, and only this function accesses it.
        unsafe { Atomic::from_ptr(&raw mut (*self.0.get()).tries) }
    }

    /// Keeps a folio for a later drop, if there is a place for it.
    ///
    /// Context: any but NMI.
    pub fn add(&self, folio: &Folio) {
        if matches!(keep_in(self.places(), folio), Ok(true)) {
            let tries = self.tries().xchg(0, Relaxed);
            // Work that is due soon is not requeued: many callers could postpone it forever.
            self.queue(wait(0), tries != 0);
        }
    }

    /// Keeps a folio for a drop that is not urgent. Returns false if there is no place for it.
    ///
    /// Context: any but NMI.
    pub fn add_at_leisure(&self, folio: &Folio) -> bool {
        // The other half of the places is reserved for urgent folios.
        let (places, _) = self.places().split_at(self.places().len() / 2);
        let kept = keep_in(places, folio).is_ok();
        if kept && self.queue(AT_LEISURE_MS, false) {
            // Not soon: an urgent folio requeues the work.
            self.tries().store(TRIES, Relaxed);
        }
        kept
    }

    /// Tries to drop the folios. For the work, which runs once at a time.
    ///
    /// Context: sleeps.
    pub fn try_all(&self) {
        if try_all(self.places(), sched::jiffies, msecs_to_jiffies(1000)) {
            let tries = self.tries().load(Relaxed).saturating_add(1);
            self.tries().store(tries, Relaxed);
            self.queue(wait(tries), false);
        }
    }

    /// Queues the work in `wait` milliseconds, if it is not queued yet, or if `anew`. Returns
    /// whether it was not queued.
    fn queue(&self, wait: u32, anew: bool) -> bool {
        // SAFETY: The work lives by the type invariants, and may be queued in any context.
        unsafe { bindings::rust_drop_begin(&raw mut (*self.0.get()).work, wait, anew) }
    }
}
