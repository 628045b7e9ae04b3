// SPDX-License-Identifier: GPL-2.0

//! Disabled interrupts: a guard as cheap as in C, and a trait for code that only needs the proof.
//!
//! C header: [`include/linux/irqflags.h`](srctree/include/linux/irqflags.h)

use crate::{
    bindings,
    ffi::c_ulong,
    percpu::StaysOnCpu,
    types::NotThreadSafe, //
};

/// Disables interrupts. Dropping it restores their previous state.
///
/// [`LocalInterruptDisabled`](crate::interrupt::LocalInterruptDisabled) counts its nesting. This
/// guard does not, and costs what `local_irq_save()` costs.
///
/// # Invariants
///
/// Interrupts are off on this CPU. `flags` is their state before that.
///
/// # Examples
///
/// ```
/// use kernel::interrupts_off::InterruptsSaved;
///
/// // SAFETY: The only guard, and not in an NMI.
/// let off = unsafe { InterruptsSaved::new() };
/// // No interrupt of this CPU runs here.
/// # // SAFETY: May be called in any context.
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
    /// Disables interrupts until the guard is dropped.
    ///
    /// C counterpart: `local_irq_save()`.
    ///
    /// # Safety
    ///
    /// Guards must be dropped in the reverse order of their creation: dropped first, the outer
    /// guard would enable interrupts. The function must not be called in an NMI, which comes even
    /// while interrupts are off. While the guard lives, no function may be called that sleeps or
    /// enables interrupts.
    #[inline(always)]
    pub unsafe fn new() -> Self {
        // INVARIANT: The flags are saved and interrupts disabled here.
        Self {
            // SAFETY: Interrupts may be disabled in any context.
            flags: unsafe { bindings::local_irq_save() },
            _here: NotThreadSafe,
        }
    }
}

impl Drop for InterruptsSaved {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: By the type invariants these flags were saved on this CPU.
        unsafe { bindings::local_irq_restore(self.flags) };
    }
}

/// Proof that interrupts are off while the proof is borrowed.
///
/// # Safety
///
/// While an instance exists, no interrupt must come to the CPU of its context. Instances must not
/// be sent to another context.
pub unsafe trait InterruptsOff: StaysOnCpu {}

// SAFETY: By the guard's invariants interrupts are off, and the guard is not `Send`.
unsafe impl InterruptsOff for InterruptsSaved {}

// SAFETY: A context with interrupts off is not preempted, and the guard is not `Send`.
unsafe impl StaysOnCpu for InterruptsSaved {}
