// SPDX-License-Identifier: GPL-2.0

//! Folios that were to leave the page cache, and that a CPU remembers.
//!
//! When they are tried again is decided in [`crate::writeback::later`].
//!
//! C header: [`include/linux/rust_leftovers.h`](srctree/include/linux/rust_leftovers.h)

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
    /// Drops the folio, if nobody has it locked. One that is dirty or under writeback by now is
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
/// - Instances are initialised and never freed, and only accessed by what is here.
/// - `folio` is null, or the place owns a reference on that folio.
#[repr(transparent)]
struct Leftover(Opaque<bindings::rust_leftover>);

// SAFETY: It is only accessed atomically.
unsafe impl Sync for Leftover {}

impl Leftover {
    fn folio(&self) -> &Atomic<*mut bindings::folio> {
        // SAFETY: The place lives by the type invariants, and the field is only accessed by this.
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
        // Before the folio. Where others put something here at the same time, one wins, and at
        // worst has another's time.
        self.since().store(since, Relaxed);
        let raw = ARef::into_raw(folio);
        // INVARIANT: The reference is the place's from here.
        match self
            .folio()
            .cmpxchg(null_mut(), raw.as_ptr().cast(), Release)
        {
            Ok(_) => Ok(()),
            // SAFETY: The reference stayed ours, and is taken up again.
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
        // INVARIANT: The reference is the place's no more.
        let raw = NonNull::new(self.folio().xchg(null_mut(), Full))?;
        // SAFETY: By the type invariants the place owned a reference, and has given it up.
        Some((unsafe { ARef::from_raw(raw.cast()) }, since))
    }
}

/// Keeps a folio in one of these places. Whoever has taken it from there before sees what the
/// caller has seen of it, or it is not found there any more.
fn keep_in(places: &[Leftover], folio: &Folio) -> Result<bool, ARef<Folio>> {
    smp_mb(Full);
    keep(places, folio.into(), sched::jiffies())
}

/// The folios that a CPU remembers (`struct rust_leftovers`).
///
/// # Invariants
///
/// Instances are initialised and never freed, and only accessed by what is here.
#[repr(transparent)]
pub struct Leftovers(Opaque<bindings::rust_leftovers>);

// SAFETY: It is only accessed atomically.
unsafe impl Sync for Leftovers {}

impl Leftovers {
    /// Makes a reference of a pointer that C hands over.
    ///
    /// # Safety
    ///
    /// `ptr` must point at the leftovers of a CPU.
    pub unsafe fn from_raw<'a>(ptr: *mut bindings::rust_leftovers) -> &'a Self {
        // SAFETY: The caller promises what is never freed, and `Self` is transparent over it.
        unsafe { &*ptr.cast() }
    }

    /// Those of all CPUs.
    pub fn per_cpu() -> PerCpu<Self> {
        // SAFETY: C defines them for each possible CPU, as zeroes but for the work, which is
        // initialised before there is a page cache. `Self` is transparent over them.
        unsafe { PerCpu::from_raw((&raw mut bindings::rust_leftovers).cast()) }
    }

    fn places(&self) -> &[Leftover] {
        // SAFETY: The places live by the type invariants, and `Leftover` is transparent over one.
        unsafe {
            let places = &raw mut (*self.0.get()).places;
            slice::from_raw_parts(places.cast(), bindings::RUST_LEFTOVERS_NR as usize)
        }
    }

    fn tries(&self) -> &Atomic<u32> {
        // SAFETY: The field lives by the type invariants, and is only accessed by this.
        unsafe { Atomic::from_ptr(&raw mut (*self.0.get()).tries) }
    }

    /// Remembers a folio that is to be dropped, if there is a place for it.
    ///
    /// Context: any but NMI.
    pub fn add(&self, folio: &Folio) {
        if matches!(keep_in(self.places(), folio), Ok(true)) {
            let tries = self.tries().xchg(0, Relaxed);
            // A work that is due soon is left alone: it would never come, were many to put it off.
            self.queue(wait(0), tries != 0);
        }
    }

    /// Remembers a folio that is to be dropped, but not soon. Returns false if there is no place
    /// for it.
    ///
    /// Context: any but NMI.
    pub fn add_at_leisure(&self, folio: &Folio) -> bool {
        // Half of the places are for those that somebody is in the way of.
        let (places, _) = self.places().split_at(self.places().len() / 2);
        let kept = keep_in(places, folio).is_ok();
        if kept && self.queue(AT_LEISURE_MS, false) {
            // Not soon: who has something urgent queues it anew.
            self.tries().store(TRIES, Relaxed);
        }
        kept
    }

    /// Tries to drop the folios. For the work, of which one runs at a time.
    ///
    /// Context: sleeps.
    pub fn try_all(&self) {
        if try_all(self.places(), sched::jiffies, msecs_to_jiffies(1000)) {
            let tries = self.tries().load(Relaxed).saturating_add(1);
            self.tries().store(tries, Relaxed);
            self.queue(wait(tries), false);
        }
    }

    /// Queues the work in so many milliseconds, if it is not queued yet, or to be queued anew.
    /// Returns whether it was not.
    fn queue(&self, wait: u32, anew: bool) -> bool {
        // SAFETY: The work lives by the type invariants, and may be queued anywhere.
        unsafe { bindings::rust_drop_begin(&raw mut (*self.0.get()).work, wait, anew) }
    }
}
