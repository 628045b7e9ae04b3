// SPDX-License-Identifier: GPL-2.0

//! What the current context may know of its CPU's scheduling.
//!
//! C headers: [`include/linux/sched.h`](srctree/include/linux/sched.h),
//! [`include/linux/jiffies.h`](srctree/include/linux/jiffies.h)

use crate::{
    bindings,
    task::Task,
    time::Jiffies, //
};

/// Whether this is an interrupt that has come upon a real-time or deadline task of a user: no
/// ordinary task of this CPU runs before that one is through. The kernel's own, such as threaded
/// interrupts, sleep soon.
///
/// Context: any.
#[inline(always)]
pub fn interrupted_real_time() -> bool {
    let current = Task::current_raw();
    // SAFETY: The current task is live; its policy is read with one load, and only it changes this
    // flag.
    unsafe {
        !in_task()
            && bindings::rt_or_dl_task(current)
            && (*current).flags & bindings::PF_KTHREAD == 0
    }
}

/// Whether this is a task, and no interrupt.
///
/// Context: any.
///
/// C counterpart: `in_task()`.
#[inline(always)]
pub fn in_task() -> bool {
    // SAFETY: It may be asked anywhere.
    unsafe { bindings::in_task() }
}

/// Lets other tasks run if it is time.
///
/// Context: a task that may sleep.
///
/// C counterpart: `cond_resched()`.
#[inline(always)]
pub fn cond_resched() {
    // SAFETY: May be called where sleeping is allowed; elsewhere C warns.
    unsafe { bindings::cond_resched() };
}

/// The ticks since boot. They wrap.
///
/// C counterpart: `jiffies`.
#[inline(always)]
pub fn jiffies() -> Jiffies {
    // SAFETY: C declares the variable volatile, for it changes at any time; it is one word.
    unsafe { (&raw const bindings::jiffies).read_volatile() }
}

/// Whether `a` is later than `b`. They may be half of the clock's range apart.
///
/// C counterpart: `time_after(a, b)`.
#[inline]
pub fn after(a: Jiffies, b: Jiffies) -> bool {
    (b.wrapping_sub(a) as isize) < 0
}

/// How many milliseconds it is until then. None if that is past.
#[inline]
pub fn until(then: Jiffies) -> Option<u32> {
    let left = then.wrapping_sub(jiffies());
    if left as isize <= 0 {
        return None;
    }
    // SAFETY: A conversion, which is always safe. It rounds down.
    let milliseconds = unsafe { bindings::jiffies64_to_msecs(left as u64) };
    Some(u32::try_from(milliseconds).unwrap_or(u32::MAX).max(1))
}
