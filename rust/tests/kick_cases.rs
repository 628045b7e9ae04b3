// SPDX-License-Identifier: GPL-2.0

//! The kick and the end of a round, step by step: what is returned, what is set, and in which order
//! the wb is used.

#![cfg(not(loom))]

use std::cell::{Cell, RefCell};
use writeback::kick::{
    ask, before_sleep, consume, ended, is_asked_for, kick_at, Bit, Run, Wb, DELAY_MS,
};
use writeback::round::Ended;

/// Writers kick at this number of pages.
const MANY: i64 = 100;

fn written(pages: i64) -> Ended {
    Ended {
        pages,
        again_ms: None,
        progress: pages > 0,
    }
}

/// A wb that records the order in which it is used.
#[derive(Default)]
struct Recorder {
    pending: Cell<bool>,
    delayed: Cell<bool>,
    queue: bool,
    dirty: i64,
    /// By how much the approximate number is too high.
    excess: i64,
    kick_at: Cell<i64>,
    now: Cell<u32>,
    due: Cell<u32>,
    calls: RefCell<Vec<&'static str>>,
}

impl Recorder {
    fn call(&self, name: &'static str) {
        self.calls.borrow_mut().push(name);
    }

    fn pass(&self, milliseconds: u32) {
        self.now.set(self.now.get() + milliseconds);
    }
}

impl Wb for Recorder {
    fn order_after_dirtying(&self) {
        self.call("order");
    }
    fn test(&self, bit: Bit) -> bool {
        let (name, value) = match bit {
            Bit::Pending => ("pending?", &self.pending),
            Bit::Delayed => ("delayed?", &self.delayed),
        };
        self.call(name);
        value.get()
    }
    fn test_and_set(&self, bit: Bit) -> bool {
        let (name, value) = match bit {
            Bit::Pending => ("set pending", &self.pending),
            Bit::Delayed => ("set delayed", &self.delayed),
        };
        self.call(name);
        value.replace(true)
    }
    fn test_and_clear(&self, bit: Bit) -> bool {
        let (name, value) = match bit {
            Bit::Pending => ("clear pending", &self.pending),
            Bit::Delayed => ("clear delayed", &self.delayed),
        };
        self.call(name);
        value.replace(false)
    }
    fn about_dirty(&self) -> i64 {
        self.call("about");
        self.dirty + self.excess
    }
    fn kick_at(&self) -> i64 {
        self.kick_at.get()
    }
    fn set_kick_at(&self, pages: i64) {
        self.kick_at.set(pages);
    }
    fn set_due_in(&self, milliseconds: u32) {
        self.due.set(self.now.get() + milliseconds);
    }
    fn due_in(&self) -> Option<u32> {
        self.due
            .get()
            .checked_sub(self.now.get())
            .filter(|&milliseconds| milliseconds > 0)
    }
    fn has_queue(&self) -> bool {
        self.queue
    }
    fn dontcache_dirty(&self) -> i64 {
        self.call("sum");
        self.dirty
    }
}

/// A wb with `dirty` pages; the threshold is [`MANY`].
fn with(dirty: i64) -> Recorder {
    Recorder {
        dirty,
        kick_at: Cell::new(MANY),
        ..Recorder::default()
    }
}

#[test]
fn many_pages_begin_a_round_at_once() {
    let wb = with(100);
    wb.test_and_set(Bit::Delayed);
    assert_eq!(ask(&wb), Some(Run::Now));
    assert!(wb.pending.get());
    assert_eq!(consume(&wb), Some(100));
    assert_eq!(consume(&wb), None);
}

#[test]
fn few_pages_wait_for_the_delay_of_the_first() {
    let wb = with(99);
    assert_eq!(ask(&wb), Some(Run::Later));
    wb.pass(DELAY_MS - 1);
    assert_eq!(ask(&wb), None);
    assert!(!is_asked_for(&wb));
    assert_eq!(consume(&wb), None);
    assert_eq!(before_sleep(&wb), Some(1));
    wb.pass(1);
    assert!(is_asked_for(&wb));
    assert_eq!(consume(&wb), Some(99));
}

#[test]
fn a_writer_that_finds_the_bit_set_does_no_atomic_operation() {
    let wb = with(1);
    ask(&wb);
    wb.calls.take();
    assert_eq!(ask(&wb), None);
    assert_eq!(
        *wb.calls.borrow(),
        ["order", "pending?", "delayed?", "about"]
    );
}

#[test]
fn no_sum_is_read_without_a_request() {
    let wb = with(7);
    assert_eq!(consume(&wb), None);
    assert_eq!(*wb.calls.borrow(), ["clear pending", "delayed?"]);
}

fn with_queue() -> Recorder {
    Recorder {
        queue: true,
        ..with(7)
    }
}

#[test]
fn left_pages_are_written_without_a_kick() {
    let wb = with_queue();
    assert_eq!(before_sleep(&wb), Some(DELAY_MS));
    wb.pass(DELAY_MS);
    assert_eq!(consume(&wb), Some(7));
    assert_eq!(consume(&wb), None);
}

#[test]
fn due_pages_do_not_wait_again() {
    let wb = with_queue();
    assert_eq!(before_sleep(&wb), Some(DELAY_MS));
    wb.pass(5);
    ended(&wb, 7, MANY, written(3));
    assert_eq!(before_sleep(&wb), Some(DELAY_MS - 5));
    wb.pass(DELAY_MS);
    assert_eq!(before_sleep(&wb), Some(0));
}

#[test]
fn the_flusher_does_not_come_back_without_pages() {
    let wb = Recorder::default();
    ended(&wb, 7, MANY, written(7));
    assert_eq!(before_sleep(&wb), None);
    assert!(!wb.delayed.get());
    assert!(!wb.calls.borrow().contains(&"sum"), "something was counted");
}

#[test]
fn inodes_without_counted_pages_are_left_to_others() {
    let wb = Recorder {
        queue: true,
        ..with(0)
    };
    ended(&wb, 0, MANY, written(0));
    assert_eq!(before_sleep(&wb), None);
    assert!(!wb.delayed.get());
}

#[test]
fn pages_that_are_not_in_the_sum_request_no_round() {
    let wb = Recorder {
        queue: true,
        excess: MANY,
        ..with(0)
    };
    wb.test_and_set(Bit::Pending);
    assert_eq!(consume(&wb), Some(0));
    ended(&wb, 0, MANY, written(0));
    assert_eq!(before_sleep(&wb), None);
}

#[test]
fn queued_inodes_are_looked_at_without_a_request() {
    let wb = Recorder {
        queue: true,
        ..with(1)
    };
    assert_eq!(before_sleep(&wb), Some(DELAY_MS));
}

#[test]
fn the_next_round_writes_what_a_round_leaves() {
    let wb = with_queue();
    ended(&wb, 7, MANY, written(7));
    wb.pass(DELAY_MS);
    assert_eq!(consume(&wb), Some(7));
}

#[test]
fn counted_pages_that_were_not_found_are_looked_for_again() {
    let wb = Recorder::default();
    ended(&wb, 7, MANY, written(3));
    assert_eq!(before_sleep(&wb), Some(DELAY_MS));
    wb.pass(DELAY_MS);
    assert_eq!(consume(&wb), Some(0));
    ended(&wb, 0, MANY, written(0));
    assert_eq!(wb.kick_at(), MANY);
    assert_eq!(before_sleep(&wb), None);
}

#[test]
fn only_the_first_writer_above_the_threshold_kicks() {
    let wb = with(MANY);
    assert_eq!(ask(&wb), Some(Run::Now));
    assert!(wb.pending.get());
    let calls = ["order", "pending?", "delayed?", "about", "set pending"];
    assert_eq!(*wb.calls.borrow(), calls);
    wb.calls.take();
    assert_eq!(ask(&wb), None);
    assert_eq!(*wb.calls.borrow(), ["order", "pending?"]);
}

#[test]
fn a_round_for_a_busy_device_is_tried_again_soon() {
    let round = Ended {
        again_ms: Some(5),
        ..written(50)
    };
    for noted in [false, true] {
        let wb = with(99);
        if noted {
            ask(&wb);
        }
        ended(&wb, 99, MANY, round);
        assert_eq!(before_sleep(&wb), Some(5));
    }
    // An earlier due time is kept.
    let wb = with(99);
    ask(&wb);
    wb.pass(DELAY_MS - 1);
    ended(&wb, 99, MANY, round);
    assert_eq!(before_sleep(&wb), Some(1));
}

#[test]
fn writers_kick_again_after_a_slow_device_is_idle() {
    let wb = with(0);
    let round = Ended {
        again_ms: Some(5),
        ..written(99)
    };
    ended(&wb, 99, MANY, round);
    assert_eq!(wb.kick_at(), i64::MAX);
    wb.pass(5);
    assert_eq!(consume(&wb), Some(0));
    ended(&wb, 0, MANY, written(0));
    assert_eq!(wb.kick_at(), MANY);
    assert_eq!(before_sleep(&wb), None);
}

#[test]
fn no_writer_kicks_while_a_round_runs() {
    let wb = with(MANY);
    ask(&wb);
    assert_eq!(consume(&wb), Some(MANY));
    assert_eq!(ask(&wb), Some(Run::Later));
    assert!(!wb.pending.get());
}

#[test]
fn a_round_is_followed_by_another_if_enough_pages_have_come() {
    let wb = with(MANY);
    ended(&wb, 50, MANY, written(50));
    assert_eq!(before_sleep(&wb), Some(0));
    let wb = with(MANY - 1);
    ended(&wb, 50, MANY, written(50));
    assert_eq!(before_sleep(&wb), None);
}

#[test]
fn pages_that_a_round_leaves_do_not_begin_the_next() {
    let wb = with(MANY);
    ended(&wb, 50, MANY, written(20));
    assert_eq!(wb.kick_at(), MANY + 30);
    assert_eq!(before_sleep(&wb), Some(DELAY_MS));
    // The pages may be gone meanwhile.
    let wb = with(10);
    ended(&wb, 50, MANY, written(20));
    assert_eq!(wb.kick_at(), MANY + 10);
}

#[test]
fn pages_that_cannot_be_written_are_tried_after_each_delay() {
    let wb = Recorder {
        queue: true,
        ..with(2 * MANY)
    };
    ended(&wb, 2 * MANY, MANY, written(0));
    assert_eq!(ask(&wb), None);
    assert_eq!(before_sleep(&wb), Some(DELAY_MS));
    wb.pass(DELAY_MS);
    assert_eq!(consume(&wb), Some(2 * MANY));
    ended(&wb, 2 * MANY, MANY, written(1));
    assert_eq!(wb.kick_at(), 3 * MANY - 1);
}

#[test]
fn requests_are_taken_before_the_sum_is_read() {
    let wb = with(7);
    wb.pending.set(true);
    wb.delayed.set(true);
    assert_eq!(consume(&wb), Some(7));
    assert!(!wb.pending.get() && !wb.delayed.get());
    assert_eq!(
        *wb.calls.borrow(),
        ["clear pending", "delayed?", "clear delayed", "sum"]
    );
}

#[test]
fn writers_kick_at_16_mib_and_earlier_if_memory_is_short() {
    for page_shift in 12..=16 {
        assert_eq!(kick_at(page_shift, u64::MAX) << page_shift, 16 << 20);
    }
    assert_eq!(kick_at(12, 40), 10);
    assert_eq!(kick_at(12, 0), 1);
}
