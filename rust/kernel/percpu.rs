// SPDX-License-Identifier: GPL-2.0

//! Per-CPU variables.
//!
//! C defines the variable. Each CPU has a share of it. All access is by shared reference, so the
//! contents have to allow concurrent access. Contents that only one CPU may change check for the
//! proof that the context stays on that CPU: [disabled interrupts](LocalInterruptDisabled).
//!
//! C header: [`include/linux/percpu.h`](srctree/include/linux/percpu.h)

use crate::{
    bindings,
    interrupt::LocalInterruptDisabled, //
};

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
    #[inline]
    pub const unsafe fn from_raw(ptr: *mut T) -> Self {
        // INVARIANT: The caller promises the address.
        Self(ptr)
    }

    /// The share of this CPU. The context stays on the CPU, because interrupts are off.
    ///
    /// C counterpart: `this_cpu_ptr()`.
    #[inline]
    pub fn this<'a>(&self, _off: &'a LocalInterruptDisabled) -> &'a T {
        self.of_any()
    }

    /// The share of the CPU that the context runs on at this moment. The context may go on to
    /// another CPU.
    ///
    /// Context: any.
    ///
    /// C counterpart: `raw_cpu_ptr()`.
    #[inline]
    pub fn of_any<'a>(&self) -> &'a T {
        // SAFETY: By the type invariants each CPU's share is valid and never freed.
        unsafe { &*bindings::raw_cpu_ptr(self.0.cast()).cast() }
    }
}
