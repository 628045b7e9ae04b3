// SPDX-License-Identifier: GPL-2.0

//! Counters that are spread over the CPUs.
//!
//! A change goes to the share of the CPU at hand; the sum of all shares and of what was folded
//! into the common count is the counter's value.
//!
//! C header: [`include/linux/percpu_counter.h`](srctree/include/linux/percpu_counter.h)

use crate::{
    bindings,
    types::Opaque, //
};

#[cfg(CONFIG_SMP)]
use crate::ffi::c_ulong;

/// Words of a CPU mask.
#[cfg(CONFIG_SMP)]
const CPU_WORDS: usize = size_of::<bindings::cpumask>() / size_of::<c_ulong>();

/// A counter that is spread over the CPUs (`struct percpu_counter`).
///
/// # Invariants
///
/// Instances are initialised and not destroyed for as long as a reference to them exists.
#[repr(transparent)]
pub struct PerCpuCounter(Opaque<bindings::percpu_counter>);

// SAFETY: Shares are changed by their own CPU with single instructions, and folded under the lock.
unsafe impl Sync for PerCpuCounter {}

impl PerCpuCounter {
    /// Makes a reference of a pointer that C hands over.
    ///
    /// # Safety
    ///
    /// `ptr` must point at a counter that is initialised and is not destroyed for `'a`.
    #[inline]
    pub unsafe fn from_raw<'a>(ptr: *mut bindings::percpu_counter) -> &'a Self {
        // SAFETY: The caller promises a live counter for `'a`, and `Self` is transparent over it.
        unsafe { &*ptr.cast() }
    }

    /// Adds `amount` to this CPU's share. The common count, and its lock, are left alone until the
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

    /// The common count: wrong by as much as all shares may have.
    ///
    /// Context: any.
    ///
    /// C counterpart: `percpu_counter_read()`.
    #[inline(always)]
    pub fn read(&self) -> i64 {
        // SAFETY: The counter is live by the type invariants. The count is written under its lock,
        // in one word.
        unsafe { (&raw const (*self.0.get()).count).read_volatile() }
    }

    /// The exact value: nothing is folded while the lock is held. Visits every CPU, so not for hot
    /// paths. May be below zero while changes on two CPUs are under way.
    ///
    /// Context: any.
    ///
    /// C counterpart: `percpu_counter_sum()`, whose walk searches the CPU masks anew for every CPU.
    #[cfg(CONFIG_SMP)]
    #[inline]
    pub fn sum(&self) -> i64 {
        let counter = self.0.get();
        // SAFETY: The counter is live by the type invariants, so its lock is initialised.
        let flags = unsafe { bindings::raw_spin_lock_irqsave(&raw mut (*counter).lock) };
        // SAFETY: The common count is only written under the lock, which we hold.
        let mut sum = unsafe { (*counter).count };
        for word in 0..CPU_WORDS {
            // SAFETY: Both masks live forever and have `CPU_WORDS` words, which change atomically.
            let (online, dying) = unsafe {
                (
                    (&raw const bindings::__cpu_online_mask.bits[word]).read_volatile(),
                    (&raw const bindings::__cpu_dying_mask.bits[word]).read_volatile(),
                )
            };
            let mut cpus = online | dying;
            while cpus != 0 {
                let cpu = word * c_ulong::BITS as usize + cpus.trailing_zeros() as usize;
                // SAFETY: The CPU is in a mask, so it is possible and has a share.
                sum = sum.wrapping_add(i64::from(unsafe {
                    bindings::percpu_counter_share(counter, cpu as u32)
                }));
                cpus &= cpus - 1;
            }
        }
        // SAFETY: The lock was taken above, with these flags.
        unsafe { bindings::raw_spin_unlock_irqrestore(&raw mut (*counter).lock, flags) };
        sum
    }

    /// The exact value, of the only CPU.
    ///
    /// C counterpart: `percpu_counter_sum()`.
    #[cfg(not(CONFIG_SMP))]
    #[inline]
    pub fn sum(&self) -> i64 {
        // SAFETY: The counter is live by the type invariants.
        unsafe { bindings::percpu_counter_sum(self.0.get()) }
    }
}
