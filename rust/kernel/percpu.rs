// SPDX-License-Identifier: GPL-2.0

//! Per-CPU variables.
//!
//! C defines the variable. Access to this CPU's share requires proof that the current context stays
//! on its CPU: the [`CpuGuard`], or [disabled interrupts](LocalInterruptDisabled). So no context
//! continues with another CPU's share by mistake. The share of another CPU is accessed by the CPU's
//! number. All access is by shared reference, so the contents have to allow concurrent access.
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
/// // The context cannot move to another CPU.
/// let before = PossibleCpu::current();
/// assert_eq!(before, PossibleCpu::current());
/// drop(guard);
/// ```
///
/// # Invariants
///
/// Preemption is disabled once for this guard, and only the guard enables it again.
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
        // SAFETY: Preemption may be disabled in any context.
        unsafe { bindings::preempt_disable() };
        // INVARIANT: Preemption was disabled above, for this guard.
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

/// Proof that the current context stays on its CPU while the proof is borrowed.
///
/// # Safety
///
/// While an instance exists, its context must not leave the CPU. Instances must not be sent to
/// another context.
pub unsafe trait StaysOnCpu {}

// SAFETY: By the invariants of the guard preemption is off, and the guard is not `Send`.
unsafe impl StaysOnCpu for CpuGuard {}

// SAFETY: A context with interrupts off is not preempted, and the token is not `Send`.
unsafe impl StaysOnCpu for LocalInterruptDisabled {}

/// A CPU that may ever be online, and so has a share of per-CPU variables.
///
/// A [`CpuId`] is a number below a bound. Numbers below the bound may be unused.
///
/// # Invariants
///
/// The CPU is in `cpu_possible_mask`, which does not change once the kernel has booted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PossibleCpu(CpuId);

impl PossibleCpu {
    /// The CPU with this number, if it is possible.
    ///
    /// C counterpart: `cpu_possible()`.
    pub fn new(cpu: CpuId) -> Option<Self> {
        // SAFETY: By the invariants of `CpuId` the number is below the bound of the masks.
        if unsafe { bindings::cpu_possible(cpu.as_u32()) } {
            // INVARIANT: Checked above.
            Some(Self(cpu))
        } else {
            None
        }
    }

    /// The CPU that runs this code, while the context stays there.
    ///
    /// C counterpart: `raw_smp_processor_id()`.
    #[inline(always)]
    pub fn current() -> Self {
        // INVARIANT: A running CPU is possible.
        Self(CpuId::current())
    }

    /// The number in C's type.
    #[inline(always)]
    pub fn as_i32(self) -> i32 {
        self.0.into()
    }
}

/// A per-CPU variable.
///
/// # Invariants
///
/// The pointer is the `__percpu` address of a variable that is initialised for each possible CPU
/// and never freed.
#[derive(Clone, Copy)]
pub struct PerCpu<T>(*mut T);

impl<T: Sync> PerCpu<T> {
    /// Makes the variable from its address in C.
    ///
    /// # Safety
    ///
    /// `ptr` must be the `__percpu` address of a variable that is valid as a `T` on each possible
    /// CPU for as long as the kernel runs.
    #[inline(always)]
    pub const unsafe fn from_raw(ptr: *mut T) -> Self {
        // INVARIANT: The caller promises the address.
        Self(ptr)
    }

    /// The share of this CPU.
    ///
    /// C counterpart: `this_cpu_ptr()`.
    #[inline(always)]
    pub fn this<'a, P: StaysOnCpu>(&self, _proof: &'a P) -> &'a T {
        // SAFETY: By the type invariants each CPU's share is valid. While the proof is borrowed,
        // the context stays on the CPU of the share.
        unsafe { &*bindings::this_cpu_ptr(self.0.cast()).cast() }
    }

    /// The share of any CPU.
    ///
    /// C counterpart: `per_cpu_ptr()`.
    #[inline(always)]
    pub fn of<'a>(&self, cpu: PossibleCpu) -> &'a T {
        // SAFETY: By the type invariants the share of each possible CPU is valid and never freed,
        // and `cpu` is possible.
        unsafe { &*bindings::per_cpu_ptr(self.0.cast(), cpu.as_i32()).cast() }
    }
}
