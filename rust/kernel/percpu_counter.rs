// SPDX-License-Identifier: GPL-2.0

//! Counters that are spread over the CPUs.
//!
//! A change goes to the share of the current CPU. The counter's value is the sum of all shares and
//! the common count, into which shares are folded.
//!
//! C header: [`include/linux/percpu_counter.h`](srctree/include/linux/percpu_counter.h)

use crate::{
    bindings,
    types::Opaque, //
};

/// A counter that is spread over the CPUs (`struct percpu_counter`).
///
/// # Invariants
///
/// Instances are initialised and not destroyed for as long as a reference to them exists.
#[repr(transparent)]
pub struct PerCpuCounter(Opaque<bindings::percpu_counter>);

// SAFETY: Each CPU changes its own share with single instructions. Shares are folded under the
// lock.
unsafe impl Sync for PerCpuCounter {}

impl PerCpuCounter {
    /// Makes a reference of a C pointer.
    ///
    /// # Safety
    ///
    /// `ptr` must point at a counter that is initialised and is not destroyed for `'a`.
    #[inline]
    pub unsafe fn from_raw<'a>(ptr: *mut bindings::percpu_counter) -> &'a Self {
        // SAFETY: The caller promises a live counter for `'a`, and `Self` is transparent over it.
        unsafe { &*ptr.cast() }
    }

    /// Adds `amount` to this CPU's share. The common count and its lock are not touched until the
    /// share has reached `batch`.
    ///
    /// Context: any.
    ///
    /// C counterpart: `percpu_counter_add_batch()`.
    #[inline]
    pub fn add_batch(&self, amount: i64, batch: i32) {
        // SAFETY: The counter is live by the type invariants.
        unsafe { bindings::percpu_counter_add_batch(self.0.get(), amount, batch) };
    }

    /// The common count. It differs from the value by at most the limits of all shares.
    ///
    /// Context: any.
    ///
    /// C counterpart: `percpu_counter_read()`.
    #[inline]
    pub fn read(&self) -> i64 {
        // SAFETY: The counter is live by the type invariants. The count is written under its lock,
        // in one word.
        unsafe { (&raw const (*self.0.get()).count).read_volatile() }
    }

    /// The exact value. Visits every CPU, with interrupts off, so it is not for hot paths. May be
    /// negative during changes on two CPUs.
    ///
    /// Context: any.
    ///
    /// C counterpart: `percpu_counter_sum()`.
    #[inline]
    pub fn sum(&self) -> i64 {
        // SAFETY: The counter is live by the type invariants.
        unsafe { bindings::percpu_counter_sum(self.0.get()) }
    }
}
