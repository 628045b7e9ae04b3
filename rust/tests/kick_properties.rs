// SPDX-License-Identifier: GPL-2.0

//! Writers at random times, a flusher that runs when it is woken or its timer is due, and a drive
//! that takes no time. The tests check how long a page waits, how many rounds there are, and how
//! often an idle flusher runs.

#![cfg(not(loom))]

use proptest::prelude::*;
use std::cell::Cell;
use writeback::kick::{
    self, ask, before_sleep, consume, ended, kick_at, Bit, Run, Wb as _, DELAY_MS,
};
use writeback::round::Ended;

/// The time from a wake-up of the flusher to its run.
const WAKE_MS: u64 = 1;

/// A wb's bits, its counter, and a clock in milliseconds that is set by hand.
#[derive(Debug, Default)]
struct Wb {
    now: Cell<u64>,
    dirty: Cell<i64>,
    kick_at: Cell<i64>,
    /// Whether inodes wait in the flusher's queue.
    queue: Cell<bool>,
    pending: Cell<bool>,
    delayed: Cell<bool>,
    due: Cell<u64>,
}

impl Wb {
    fn bit(&self, bit: Bit) -> &Cell<bool> {
        match bit {
            Bit::Pending => &self.pending,
            Bit::Delayed => &self.delayed,
        }
    }
}

impl kick::Wb for Wb {
    fn order_after_dirtying(&self) {}

    fn test(&self, bit: Bit) -> bool {
        self.bit(bit).get()
    }

    fn test_and_set(&self, bit: Bit) -> bool {
        self.bit(bit).replace(true)
    }

    fn test_and_clear(&self, bit: Bit) -> bool {
        self.bit(bit).replace(false)
    }

    fn about_dirty(&self) -> i64 {
        self.dirty.get()
    }

    fn kick_at(&self) -> i64 {
        self.kick_at.get()
    }

    fn set_kick_at(&self, pages: i64) {
        self.kick_at.set(pages);
    }

    fn set_due_in(&self, milliseconds: u32) {
        self.due.set(self.now.get() + u64::from(milliseconds));
    }

    fn due_in(&self) -> Option<u32> {
        let rest = self.due.get().saturating_sub(self.now.get());
        u32::try_from(rest).ok().filter(|&rest| rest > 0)
    }

    fn has_queue(&self) -> bool {
        self.queue.get()
    }

    fn dontcache_dirty(&self) -> i64 {
        self.dirty.get()
    }
}

/// A wb with its flusher and its writers. Times are in milliseconds.
struct Machine {
    wb: Wb,
    /// The threshold at which writers kick, while no round runs and no round has left pages.
    many: i64,
    /// When the flusher runs: because it was woken, and because of its timer.
    woken: Option<u64>,
    timer: Option<u64>,
    /// The times of the writes whose pages still wait.
    waiting: Vec<u64>,
    /// The number of pages that cannot be written.
    stays: i64,
    rounds: i64,
    runs: u32,
    /// The limit of pages of a round, after which other work has its turn.
    quota: i64,
    /// The pages of writers that write while the flusher runs: after it has taken the requests,
    /// after it has written the pages, and before it sleeps.
    beside: [i64; 3],
}

impl Machine {
    fn new(many: i64) -> Self {
        Self {
            wb: Wb {
                kick_at: Cell::new(many),
                ..Wb::default()
            },
            many,
            woken: None,
            timer: None,
            waiting: Vec::new(),
            stays: 0,
            rounds: 0,
            runs: 0,
            quota: i64::MAX,
            beside: [0; 3],
        }
    }

    fn now(&self) -> u64 {
        self.wb.now.get()
    }

    /// When the delayed pages are due, if the delayed bit is set.
    fn deadline(&self) -> Option<u64> {
        let due_in = u64::from(self.wb.due_in().unwrap_or(0));
        self.wb.test(Bit::Delayed).then_some(self.now() + due_in)
    }

    fn arm(&mut self, milliseconds: u32) {
        let at = self.now() + u64::from(milliseconds);
        self.timer = Some(self.timer.map_or(at, |timer| timer.min(at)));
    }

    /// A writer dirties pages. All writers write to the same inode.
    fn write(&mut self, pages: i64) {
        if pages == 0 {
            return;
        }
        self.wb.queue.set(true);
        self.wb.dirty.set(self.wb.dirty.get() + pages);
        self.waiting.push(self.now());
        let before = self.deadline();
        match ask(&self.wb) {
            Some(Run::Now) => self.woken = self.woken.or(Some(self.now() + WAKE_MS)),
            Some(Run::Later) => self.arm(DELAY_MS),
            None => {}
        }
        assert!(
            before.is_none() || self.deadline() <= before,
            "a deadline was put off"
        );
        assert!(
            self.wb.dirty.get() < self.wb.kick_at.get() || self.wb.test(Bit::Pending),
            "many pages are left to wait"
        );
    }

    /// Does these writes, and the writes beside them while the flusher runs.
    fn write_all(&mut self, writes: Vec<(u64, i64, [i64; 3])>) {
        for (gap, pages, beside) in writes {
            self.beside = beside;
            self.pass(gap);
            self.write(pages);
            self.check_somebody_comes();
        }
    }

    /// Does the write that belongs to this point of the flusher's run.
    fn write_beside(&mut self, point: usize) {
        let pages = std::mem::take(&mut self.beside[point]);
        self.write(pages);
    }

    /// The flusher runs, and writes all pages but `stays`.
    fn run(&mut self) {
        self.runs += 1;
        if let Some(counted) = consume(&self.wb) {
            self.rounds += 1;
            self.write_beside(0);
            let dirty = self.wb.dirty.get();
            let budget = counted.min(self.quota);
            let written =
                (dirty - self.stays)
                    .max(0)
                    .min(if budget < counted { budget } else { dirty });
            self.wb.dirty.set(dirty - written);
            self.wb.queue.set(dirty > written);
            for since in &self.waiting {
                let waited = self.now() - since;
                assert!(
                    self.stays > 0 || waited <= u64::from(DELAY_MS) + WAKE_MS,
                    "waited for {waited} ms"
                );
            }
            if written == dirty {
                self.waiting.clear();
            }
            self.write_beside(1);
            let round = Ended {
                pages: written,
                again_ms: (budget < counted && written > 0).then_some(0),
                progress: written > 0,
            };
            ended(&self.wb, counted, self.many, round);
        }
        self.write_beside(2);
        if let Some(milliseconds) = before_sleep(&self.wb) {
            self.arm(milliseconds);
        }
        self.check_somebody_comes();
    }

    /// If pages wait, the flusher is woken or has a timer. If many pages wait, it runs immediately.
    fn check_somebody_comes(&self) {
        assert!(
            self.wb.dirty.get() == 0 || self.woken.is_some() || self.timer.is_some(),
            "forgotten"
        );
        let comes = self.next_run().is_some_and(|at| at <= self.now() + WAKE_MS);
        let are_many = self.wb.dirty.get() >= self.wb.kick_at.get();
        assert!(
            comes || !self.wb.test(Bit::Pending) && !are_many,
            "nobody comes for a request"
        );
    }

    /// When the flusher runs next.
    fn next_run(&self) -> Option<u64> {
        self.woken.into_iter().chain(self.timer).min()
    }

    fn set_clock(&mut self, now: u64) {
        self.wb.now.set(now);
        self.woken = self.woken.filter(|&at| at > now);
        self.timer = self.timer.filter(|&at| at > now);
    }

    /// Lets the time pass, and has the flusher run when it is due.
    fn pass(&mut self, milliseconds: u64) {
        let end = self.now() + milliseconds;
        while let Some(at) = self.next_run().filter(|&at| at <= end) {
            self.set_clock(at);
            self.run();
        }
        self.set_clock(end);
    }
}

/// Writes: the milliseconds since the last write, the pages, and the pages of writers beside the
/// flusher.
fn writes() -> impl Strategy<Value = Vec<(u64, i64, [i64; 3])>> {
    let gap = prop_oneof![4 => 0..4u64, 2 => 0..60u64, 1 => 0..3000u64];
    let pages = prop_oneof![4 => 1..20i64, 1 => 1..3000i64];
    let beside = prop_oneof![
        4 => Just([0; 3]),
        1 => [0..2i64, 0..2i64, 0..2i64],
        1 => [0..3000i64, 0..3000i64, 0..3000i64],
    ];
    prop::collection::vec((gap, pages, beside), 1..80)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    /// No deadline is put off, and in the end there is neither a timer nor a flusher that runs.
    #[test]
    fn no_page_waits_for_longer_than_the_delay(
        writes in writes(), many in 1..3000i64, quota in prop_oneof![Just(i64::MAX), 1..3000i64],
    ) {
        let mut machine = Machine::new(many);
        machine.quota = quota;
        machine.write_all(writes);
        // Two rounds: the second writes the pages that come during the first.
        machine.pass(2 * u64::from(DELAY_MS) + 3);
        prop_assert_eq!(machine.wb.dirty.get(), 0);
        // One run may find nothing: a writer requested it while its pages were written.
        let runs = machine.runs;
        machine.pass(1_000_000);
        prop_assert!(machine.runs <= runs + 1, "{} runs while idle", machine.runs - runs);
        prop_assert_eq!((machine.woken, machine.timer), (None, None));
    }

    /// The flusher retries the pages that a round cannot write after each delay, until they are written.
    #[test]
    fn pages_that_stay_are_tried_again(writes in writes(), many in 1..3000i64, stays in 1..50i64) {
        let mut machine = Machine::new(many);
        machine.stays = stays;
        machine.write_all(writes);
        let runs = machine.runs;
        machine.pass(10_000);
        prop_assert!(machine.runs - runs <= 10_000 / DELAY_MS + 4, "{} runs in 10 s", machine.runs - runs);
        machine.stays = 0;
        machine.waiting.clear();
        machine.pass(2 * u64::from(DELAY_MS) + 3);
        prop_assert_eq!(machine.wb.dirty.get(), 0);
    }

    /// A burst costs at most one round each time that its pages reach the threshold, and one round
    /// for the rest.
    #[test]
    fn a_burst_costs_as_many_rounds_as_it_fills(
        writes in prop::collection::vec((0..3u64, 1..600i64), 1..40), many in 1..3000i64,
    ) {
        let mut machine = Machine::new(many);
        let mut pages = 0;
        for (gap, more) in writes {
            machine.pass(gap);
            machine.write(more);
            pages += more;
        }
        machine.pass(1_000_000);
        prop_assert!(machine.rounds <= pages / many + 1, "{} rounds for {pages} pages", machine.rounds);
    }

    /// Writers kick at no more than a quarter of the background limit.
    #[test]
    fn writers_kick_before_background_writeback(background in any::<u64>(), page_shift in 12..=16u32) {
        let pages = kick_at(page_shift, background);
        prop_assert!(pages == 1 || u64::try_from(pages).unwrap() <= background / 4);
        prop_assert!((1..=(16 << 20) >> page_shift).contains(&pages));
    }
}
