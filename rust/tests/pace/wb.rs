// SPDX-License-Identifier: GPL-2.0

//! A wb of the pace's tests: its bits, its counter, and a clock that is set by hand.

use std::cell::Cell;
use writeback::kick::{self, Why};

/// Nanoseconds in a millisecond.
pub(crate) const MS: u64 = 1_000_000;

#[derive(Debug, Default)]
pub(crate) struct Wb {
    /// In nanoseconds, like all times here.
    pub(crate) now: Cell<u64>,
    pub(crate) dirty: Cell<i64>,
    pub(crate) kick_at: Cell<i64>,
    pub(crate) delay_ms: Cell<u32>,
    /// Whether inodes wait in the flusher's queue.
    pub(crate) queue: Cell<bool>,
    pending: Cell<bool>,
    left: Cell<bool>,
    stuck: Cell<bool>,
    due: Cell<u64>,
    why: Cell<Why>,
}

impl kick::Wb for Wb {
    fn order_after_dirtying(&self) {}

    fn has_dirty_io(&self) -> bool {
        self.queue.get()
    }

    fn is_pending(&self) -> bool {
        self.pending.get()
    }

    fn test_and_set_pending(&self) -> bool {
        self.pending.replace(true)
    }

    fn test_and_clear_pending(&self) -> bool {
        self.pending.replace(false)
    }

    fn about_dirty(&self) -> i64 {
        self.dirty.get()
    }

    fn kick_at(&self) -> i64 {
        self.kick_at.get()
    }

    fn delay_ms(&self) -> u32 {
        self.delay_ms.get()
    }

    fn test_and_set_left(&self) -> bool {
        self.left.replace(true)
    }

    fn is_left(&self) -> bool {
        self.left.get()
    }

    fn take_left(&self) -> bool {
        self.left.replace(false)
    }

    fn set_why(&self, why: Why) {
        self.why.set(why);
    }

    fn set_due_in(&self, milliseconds: u32) {
        self.due.set(self.now.get() + u64::from(milliseconds) * MS);
    }

    fn why(&self) -> Why {
        self.why.get()
    }

    fn due_in(&self) -> Option<u32> {
        let rest = self.due.get().saturating_sub(self.now.get()).div_ceil(MS);
        u32::try_from(rest).ok().filter(|&rest| rest > 0)
    }

    fn set_stuck(&self, stuck: bool) {
        self.stuck.set(stuck);
    }

    fn is_stuck(&self) -> bool {
        self.stuck.get()
    }

    fn has_queue(&self) -> bool {
        self.queue.get()
    }

    fn dontcache_dirty(&self) -> i64 {
        self.dirty.get()
    }
}
