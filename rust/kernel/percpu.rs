// SPDX-License-Identifier: GPL-2.0

//! Storage of which each CPU has its own.
//!
//! It is defined in C and reached with proof that the current context stays on its CPU: the
//! [`CpuGuard`], or [interrupts that are off](crate::interrupts_off). So nobody goes on with
//! another CPU's share unawares. Another CPU's share is reached by its number, and by shared
//! reference like one's own: what is in there has to stand that.
//!
//! C header: [`include/linux/percpu.h`](srctree/include/linux/percpu.h)

use crate::{
    bindings,
    cpu::CpuId,
    interrupt::LocalInterruptDisabled,
    types::NotThreadSafe, //
};

/// Keeps the current context on its CPU. Dropping it lets the context move.
///
/// # Examples
///
/// ```
/// use kernel::percpu::{CpuGuard, PossibleCpu};
///
/// let guard = CpuGuard::new();
/// // What was this CPU a moment ago is still this one.
/// let before = PossibleCpu::current();
/// assert_eq!(before, PossibleCpu::current());
/// drop(guard);
/// ```
///
/// # Invariants
///
/// Preemption is disabled once for this guard, which is what enables it again.
#[must_use = "the context may move when the guard is dropped"]
pub struct CpuGuard(NotThreadSafe);

impl CpuGuard {
    /// Disables preemption until the guard is dropped.
    ///
    /// Context: any.
    ///
    /// C counterpart: `preempt_disable()`.
    #[inline(always)]
    #[expect(clippy::new_without_default, reason = "it does something")]
    pub fn new() -> Self {
        // SAFETY: Preemption may be disabled anywhere.
        unsafe { bindings::preempt_disable() };
        // INVARIANT: Disabled above, for this guard.
        Self(NotThreadSafe)
    }
}

impl Drop for CpuGuard {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: By the type invariants preemption was disabled for this guard.
        unsafe { bindings::preempt_enable() };
    }
}

/// Proof that the current context stays on its CPU for as long as the proof is borrowed.
///
/// # Safety
///
/// For as long as an instance exists the context that has it must not leave its CPU, and instances
/// must not be sent to another one.
pub unsafe trait StaysOnCpu {}

// SAFETY: By its invariants preemption is off, and it is not `Send`.
unsafe impl StaysOnCpu for CpuGuard {}

// SAFETY: A context with interrupts off is not preempted, and the token is not `Send`.
unsafe impl StaysOnCpu for LocalInterruptDisabled {}

/// A CPU that may ever be on line: it has a share of what each CPU has of its own.
///
/// A [`CpuId`] is a number below a bound, and below that there may be gaps.
///
/// # Invariants
///
/// The CPU is in `cpu_possible_mask`, which does not change once the kernel has booted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PossibleCpu(CpuId);

impl PossibleCpu {
    /// The CPU of this number, if it is possible.
    ///
    /// C counterpart: `cpu_possible()`.
    pub fn new(cpu: CpuId) -> Option<Self> {
        // SAFETY: By the invariants of `CpuId` the number is below the bound of the masks.
        if unsafe { bindings::cpu_possible(cpu.as_u32()) } {
            // INVARIANT: Just seen.
            Some(Self(cpu))
        } else {
            None
        }
    }

    /// The CPU that this code runs on: for as long as the context stays there.
    ///
    /// C counterpart: `raw_smp_processor_id()`.
    #[inline(always)]
    pub fn current() -> Self {
        // INVARIANT: A CPU that runs is possible.
        Self(CpuId::current())
    }

    /// The number, as C has it.
    #[inline(always)]
    pub fn as_i32(self) -> i32 {
        self.0.into()
    }
}

/// A variable of which each CPU has its own.
///
/// # Invariants
///
/// The pointer is the `__percpu` address of a variable that is initialised for each possible CPU
/// and never freed.
#[derive(Clone, Copy)]
pub struct PerCpu<T>(*mut T);

impl<T: Sync> PerCpu<T> {
    /// Makes the variable of the address that C knows it by.
    ///
    /// # Safety
    ///
    /// `ptr` must be the `__percpu` address of a variable that is valid as a `T` on each possible
    /// CPU for as long as the kernel runs.
    #[inline(always)]
    pub const unsafe fn from_raw(ptr: *mut T) -> Self {
        // INVARIANT: The caller promises it.
        Self(ptr)
    }

    /// The share of this CPU.
    ///
    /// C counterpart: `this_cpu_ptr()`.
    #[inline(always)]
    pub fn this<'a, P: StaysOnCpu>(&self, _proof: &'a P) -> &'a T {
        // SAFETY: By the type invariants each CPU's share is valid, and while the proof is borrowed
        // the context stays where the share is its own.
        unsafe { &*bindings::this_cpu_ptr(self.0.cast()).cast() }
    }

    /// The share of another CPU, or of this one.
    ///
    /// C counterpart: `per_cpu_ptr()`.
    #[inline(always)]
    pub fn of<'a>(&self, cpu: PossibleCpu) -> &'a T {
        // SAFETY: By the type invariants the share of each possible CPU, as this is one, is valid
        // and is never freed.
        unsafe { &*bindings::per_cpu_ptr(self.0.cast(), cpu.as_i32()).cast() }
    }
}
