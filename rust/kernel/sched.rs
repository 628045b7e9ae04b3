// SPDX-License-Identifier: GPL-2.0

//! Time, and the current context's relation to the scheduler.
//!
//! C headers: [`include/linux/sched.h`](srctree/include/linux/sched.h),
//! [`include/linux/jiffies.h`](srctree/include/linux/jiffies.h)

use crate::{
    bindings,
    time::Jiffies, //
};

/// Whether the current context is a task with interrupts on that may be preempted. Without
/// `CONFIG_PREEMPT_COUNT` the kernel does not know whether the task may be preempted: then only the
/// other conditions are checked.
///
/// Context: any.
///
/// C counterpart: `in_task() && preemptible()`. With `PREEMPT_RT`, that is also true in a task that
/// holds a spinlock, so a task in an RCU section is excluded, too.
#[inline]
pub fn is_preemptible() -> bool {
    // SAFETY: May be called in any context.
    unsafe { bindings::task_is_preemptible() }
}

/// Lets other tasks run if necessary.
///
/// Context: a task that may sleep.
///
/// C counterpart: `cond_resched()`.
#[inline]
pub fn cond_resched() {
    // SAFETY: The function accesses no memory of the caller. In atomic context it reports a bug of
    // the caller, which does not break memory safety.
    unsafe { bindings::cond_resched() };
}

/// Ticks since boot. They wrap.
///
/// C counterpart: `jiffies`.
pub fn jiffies() -> Jiffies {
    // SAFETY: C declares the variable volatile, because it changes at any time. It is one word.
    unsafe { (&raw const bindings::jiffies).read_volatile() }
}

/// Whether `a` is later than `b`. The two times may be up to half of the clock's range apart.
///
/// C counterpart: `time_after(a, b)`.
pub fn after(a: Jiffies, b: Jiffies) -> bool {
    (b.wrapping_sub(a) as isize) < 0
}

/// So many ticks in milliseconds, rounded down.
pub fn to_ms(ticks: Jiffies) -> u64 {
    // SAFETY: The conversion has no requirements.
    unsafe { bindings::jiffies64_to_msecs(ticks as u64) }
}

/// Milliseconds until `then`. None if `then` is past.
pub fn until(then: Jiffies) -> Option<u32> {
    let left = then.wrapping_sub(jiffies());
    if left as isize <= 0 {
        return None;
    }
    Some(u32::try_from(to_ms(left)).unwrap_or(u32::MAX).max(1))
}
