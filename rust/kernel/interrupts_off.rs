// SPDX-License-Identifier: GPL-2.0

//! Interrupts that are off: guards at C's price, and the proof that they are for who needs no more.
//!
//! C header: [`include/linux/irqflags.h`](srctree/include/linux/irqflags.h)

use crate::{
    bindings,
    ffi::c_ulong,
    percpu::StaysOnCpu,
    types::NotThreadSafe, //
};

/// Interrupts that are off, and will be as they were when this is dropped.
///
/// [`LocalInterruptDisabled`](crate::interrupt::LocalInterruptDisabled) counts how deep it is
/// nested. This does not, and costs what `local_irq_save()` costs.
///
/// # Invariants
///
/// Interrupts are off on this CPU. `flags` is what they were before.
///
/// # Examples
///
/// ```
/// use kernel::interrupts_off::InterruptsSaved;
///
/// // SAFETY: The only guard, and not in an NMI.
/// let off = unsafe { InterruptsSaved::new() };
/// // Here no interrupt of this CPU comes between.
/// # // SAFETY: It may be asked anywhere.
/// # assert!(unsafe { kernel::bindings::irqs_disabled() });
/// drop(off);
/// # // SAFETY: As above.
/// # assert!(!unsafe { kernel::bindings::irqs_disabled() });
/// ```
#[must_use = "interrupts are as they were when the guard is dropped"]
pub struct InterruptsSaved {
    flags: c_ulong,
    _here: NotThreadSafe,
}

impl InterruptsSaved {
    /// Turns interrupts off, if they are on, until the guard is dropped.
    ///
    /// C counterpart: `local_irq_save()`.
    ///
    /// # Safety
    ///
    /// Guards must be dropped in the reverse order of their making: the first would turn interrupts
    /// on otherwise. It must not be used in an NMI, which comes while they are off. For as long as
    /// the guard lives nothing may be called that sleeps or turns interrupts on.
    #[inline(always)]
    pub unsafe fn new() -> Self {
        // INVARIANT: Saved and turned off here.
        Self {
            // SAFETY: Interrupts may be turned off anywhere.
            flags: unsafe { bindings::local_irq_save() },
            _here: NotThreadSafe,
        }
    }
}

impl Drop for InterruptsSaved {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: By the type invariants these are the flags that were saved on this CPU.
        unsafe { bindings::local_irq_restore(self.flags) };
    }
}

/// Interrupts that are off, and were on before.
///
/// # Invariants
///
/// Interrupts are off on this CPU, and were turned off for this guard.
#[must_use = "interrupts are on when the guard is dropped"]
pub struct InterruptsDisabled(NotThreadSafe);

impl InterruptsDisabled {
    /// Turns interrupts off until the guard is dropped.
    ///
    /// C counterpart: `local_irq_disable()`.
    ///
    /// # Safety
    ///
    /// Interrupts must be on: who had turned them off would find them on. For as long as the guard
    /// lives nothing may be called that sleeps or turns interrupts on.
    #[inline(always)]
    pub unsafe fn new() -> Self {
        // SAFETY: Interrupts may be turned off anywhere.
        unsafe { bindings::local_irq_disable() };
        // INVARIANT: Turned off above, for this guard.
        Self(NotThreadSafe)
    }
}

impl Drop for InterruptsDisabled {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: By the type invariants they were turned off for this guard.
        unsafe { bindings::local_irq_enable() };
    }
}

/// Proof that interrupts are off for as long as the proof is borrowed.
///
/// # Safety
///
/// For as long as an instance exists no interrupt must come to the CPU of the context that has it,
/// and instances must not be sent to another one.
pub unsafe trait InterruptsOff: StaysOnCpu {}

// SAFETY: By its invariants, and it is not `Send`.
unsafe impl InterruptsOff for InterruptsSaved {}

// SAFETY: By its invariants, and it is not `Send`.
unsafe impl InterruptsOff for InterruptsDisabled {}

// SAFETY: A context with interrupts off is not preempted, and the guard is not `Send`.
unsafe impl StaysOnCpu for InterruptsSaved {}

// SAFETY: As for `InterruptsSaved`.
unsafe impl StaysOnCpu for InterruptsDisabled {}
