// SPDX-License-Identifier: GPL-2.0

//! Writers that come at random, and a flusher that runs when it is woken or its timer is due, before a
//! drive that takes no time: how long a page waits, how many rounds there are, and what idling costs.

#![cfg(not(loom))]

#[path = "pace/wb.rs"]
mod wb;

use proptest::prelude::*;
use wb::{Wb, MS};
use writeback::kick::{ask, consume, ended, go_on, rest, Run, Wb as _, Why};
use writeback::pace::{
    pages_limit, Bounds, DeviceWrites, KickAt, Pace, Progress, Room, BOUNDS, BUSY_MS,
    DELAY_LIMIT_MS, TINY_KIB,
};
use writeback::round::{self, Ended, REST_MS, STUCK_MS};

/// For how long a flusher that was woken may take to run.
const WAKE_MS: u64 = 1;

/// A wb with its flusher and its writers. Times are in milliseconds.
struct Machine {
    wb: Wb,
    bounds: Bounds,
    pace: Pace,
    kick_at: KickAt,
    bandwidth: u64,
    inodes: u32,
    now: u64,
    /// When the flusher runs because it was woken, and because of its timer.
    woken: Option<u64>,
    timer: Option<u64>,
    /// Writes whose pages wait: since when, and for how long they may.
    waiting: Vec<(u64, u64)>,
    /// Of how many of them a round may have kept pages, or not found them.
    nr_kept: usize,
    /// The least that was needed for a round at once.
    least_kick_at: i64,
    rounds: i64,
    runs: u32,
    /// So many pages make up no whole request.
    keeps: i64,
    /// A round writes so many pages at most, and other work has its turn.
    turn: i64,
    /// What the round that runs has found.
    found: i64,
    /// Writers that come while the flusher runs: after the requests were taken, when the pages are
    /// written, and before it rests.
    beside: [i64; 3],
}

impl Machine {
    fn new(bounds: Bounds, bandwidth: u64) -> Self {
        let pace = Pace::new(&bounds);
        let mut machine = Self {
            wb: Wb::default(),
            bounds,
            pace,
            kick_at: pace.kick_at(&bounds, bandwidth, 1 << 20),
            bandwidth,
            inodes: 0,
            now: 0,
            woken: None,
            timer: None,
            waiting: Vec::new(),
            nr_kept: 0,
            least_kick_at: i64::MAX,
            rounds: 0,
            runs: 0,
            keeps: 0,
            turn: i64::MAX,
            found: 0,
            beside: [0; 3],
        };
        machine.publish();
        machine
    }

    /// What writers see of the pace.
    fn publish(&mut self) {
        let kick_at = self.kick_at.with_inodes(&self.bounds, self.inodes);
        self.least_kick_at = self.least_kick_at.min(kick_at);
        self.wb.kick_at.set(kick_at + self.found);
        self.wb.delay_ms.set(self.pace.delay_ms);
    }

    /// When what waits is due, if anything is noted.
    fn deadline(&self) -> Option<u64> {
        let due_in = u64::from(self.wb.due_in().unwrap_or(0));
        self.wb.is_left().then_some(self.now + due_in)
    }

    fn arm(&mut self, milliseconds: u32) {
        let at = self.now + u64::from(milliseconds);
        self.timer = Some(self.timer.map_or(at, |timer| timer.min(at)));
    }

    /// A writer dirties pages of the same inode as those before.
    fn write(&mut self, pages: i64) {
        if pages == 0 {
            return;
        }
        if !self.wb.queue.replace(true) {
            self.inodes += 1;
            self.publish();
        }
        self.wb.dirty.set(self.wb.dirty.get() + pages);
        let may_wait = u64::from(self.pace.delay_ms);
        self.waiting.push((self.now, may_wait));
        let before = self.deadline();
        match ask(&self.wb, || unreachable!()) {
            Some(Run::Now) => self.woken = self.woken.or(Some(self.now + WAKE_MS)),
            Some(Run::Within(milliseconds)) => self.arm(milliseconds),
            None => {}
        }
        assert!(
            before.is_none() || self.deadline() <= before,
            "a deadline was put off"
        );
        assert!(
            self.wb.dirty.get() < self.wb.kick_at.get()
                || self.woken.is_some()
                || self.wb.is_pending()
                || self.wb.is_stuck(),
            "many pages are left to wait"
        );
    }

    /// The writer comes that was to come at this point of the flusher's run.
    fn write_beside(&mut self, point: usize) {
        let pages = std::mem::take(&mut self.beside[point]);
        self.write(pages);
    }

    /// The flusher runs, and writes all but `stays` pages.
    fn run(&mut self, device: DeviceWrites, stays: i64) {
        self.runs += 1;
        if let Some(asked) = consume(&self.wb) {
            let budget = asked.pages.min(self.turn);
            self.rounds += 1;
            self.pace = self
                .pace
                .after(&self.bounds, device, asked.why == Why::Size);
            self.kick_at = self.pace.kick_at(&self.bounds, self.bandwidth, 1 << 20);
            self.inodes = 0;
            self.found = asked.pages;
            self.publish();
            self.write_beside(0);
            let dirty = self.wb.dirty.get();
            let stays = stays.min(dirty);
            let keeps = match asked.rest_ms {
                1.. if budget == asked.pages => self.keeps.min(dirty - stays - 1).max(0),
                _ => 0,
            };
            let written = if budget < asked.pages {
                budget.min(dirty - stays)
            } else {
                dirty - stays - keeps
            };
            let rest = dirty - written;
            self.wb.dirty.set(rest);
            self.wb.queue.set(rest > 0);
            for (since, may_wait) in &self.waiting {
                let waited = self.now - since;
                assert!(
                    waited <= may_wait + WAKE_MS,
                    "waited for {waited} of {may_wait} ms"
                );
            }
            // Any of them may be left, and what is kept be kept again, but not for longer.
            if rest == stays {
                self.waiting.clear();
                self.nr_kept = 0;
            }
            if keeps > 0 {
                for (_, may_wait) in &mut self.waiting[self.nr_kept..] {
                    *may_wait += u64::from(REST_MS);
                }
                self.nr_kept = self.waiting.len();
            }
            if stays > 0 {
                let again = u64::from(STUCK_MS.max(self.pace.delay_ms));
                self.waiting.push((self.now, again));
                self.nr_kept = self.waiting.len();
            }
            self.write_beside(1);
            self.found = keeps;
            self.publish();
            let round = Ended {
                pages: written,
                kept: keeps,
                again_ms: (keeps > 0).then_some(asked.rest_ms),
                progress: dirty > stays,
            };
            ended(&self.wb, asked.pages, round.of_turn(budget, asked.pages));
            go_on(&self.wb);
        }
        self.write_beside(2);
        if let Some(milliseconds) = rest(&self.wb) {
            self.arm(milliseconds);
        }
        self.check_somebody_comes();
    }

    /// Whoever has pages waiting has a flusher that comes.
    fn check_somebody_comes(&self) {
        assert!(
            self.wb.dirty.get() == 0 || self.woken.is_some() || self.timer.is_some(),
            "forgotten"
        );
        let comes = self.next_run().is_some_and(|at| at <= self.now + WAKE_MS);
        let are_many = self.wb.dirty.get() >= self.wb.kick_at.get() && !self.wb.is_stuck();
        assert!(
            comes || !self.wb.is_pending() && !are_many,
            "nobody comes for a request"
        );
    }

    /// When the flusher runs next.
    fn next_run(&self) -> Option<u64> {
        self.woken.into_iter().chain(self.timer).min()
    }

    fn set_clock(&mut self, now: u64) {
        self.now = now;
        self.wb.now.set(now * MS);
        if self.woken.is_some_and(|at| at <= now) {
            self.woken = None;
        }
        if self.timer.is_some_and(|at| at <= now) {
            self.timer = None;
        }
    }

    /// Has the flusher run when it is to, up to `end`.
    fn pass_until(&mut self, end: u64, device: DeviceWrites, stays: i64) {
        while let Some(at) = self.next_run().filter(|&at| at <= end) {
            self.set_clock(at);
            self.run(device, stays);
        }
        self.set_clock(end);
    }
}

/// A device that has written nothing, so that the pace stays what it is.
const SILENT: DeviceWrites = DeviceWrites {
    writes: 0,
    kib: 0,
    largest_kib: 512,
    counts: true,
};

const PAGES_LIMIT: i64 = pages_limit(12);

prop_compose! {
    fn bounds()(
        pages in (1..=PAGES_LIMIT, 1..=PAGES_LIMIT),
        inode in 0..=PAGES_LIMIT,
        delays in (1..=DELAY_LIMIT_MS, 1..=DELAY_LIMIT_MS),
    ) -> Bounds {
        let most_pages = pages.0.max(pages.1);
        Bounds {
            least_pages: pages.0.min(pages.1),
            most_pages,
            inode_pages: inode.min(most_pages),
            least_delay_ms: delays.0.min(delays.1),
            most_delay_ms: delays.0.max(delays.1),
        }
    }
}

prop_compose! {
    fn progress()(
        written in any::<i64>(), under_way in any::<i64>(), elapsed_us in any::<u64>(),
    ) -> Progress {
        Progress { written, under_way, elapsed_us }
    }
}

prop_compose! {
    fn device()(
        writes in any::<u64>(), kib in any::<u64>(), largest_kib in any::<u64>(), counts in any::<bool>(),
    ) -> DeviceWrites {
        DeviceWrites { writes, kib, largest_kib, counts }
    }
}

/// What a device says of which the writes are all small, all large, or neither.
fn plausible_device() -> impl Strategy<Value = DeviceWrites> {
    (0..100u64, 0..200u64).prop_map(|(writes, each)| DeviceWrites {
        writes,
        kib: writes * each * 4,
        largest_kib: 512,
        counts: true,
    })
}

/// A write, so many milliseconds after the last one; and what the device says when it comes.
fn writes() -> impl Strategy<Value = Vec<(u64, i64, DeviceWrites, [i64; 3])>> {
    let gap = prop_oneof![4 => 0..4u64, 2 => 0..60u64, 1 => 0..3000u64];
    let pages = prop_oneof![4 => 1..20i64, 1 => 1..3000i64];
    let beside = prop_oneof![
        4 => Just([0; 3]),
        1 => [0..2i64, 0..2i64, 0..2i64],
        1 => [0..3000i64, 0..3000i64, 0..3000i64],
    ];
    prop::collection::vec((gap, pages, plausible_device(), beside), 1..80)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    /// No page waits for longer than the wb lets it, but for a little in which others may come to what
    /// is no whole request, and however little a round may write before other work has its turn; no
    /// deadline is put off, and in the end there is neither a timer nor a flusher that runs.
    #[test]
    fn no_page_waits_for_longer_than_the_delay(
        writes in writes(), bandwidth in 0..10_000_000u64, keeps in 0..200i64,
        turn in prop_oneof![Just(i64::MAX), 1..3000i64],
    ) {
        let mut machine = Machine::new(BOUNDS, bandwidth);
        (machine.keeps, machine.turn) = (keeps, turn);
        for (gap, pages, device, beside) in writes {
            machine.beside = beside;
            machine.pass_until(machine.now + gap, device, 0);
            machine.write(pages);
            machine.check_somebody_comes();
        }
        // Two rounds and a rest: what comes beside the first is the second's.
        let rounds = 2 * u64::from(BOUNDS.most_delay_ms + REST_MS) + 3;
        machine.pass_until(machine.now + rounds, SILENT, 0);
        prop_assert_eq!(machine.wb.dirty.get(), 0);
        // One run may come for nothing: somebody asked for it while the pages were written.
        let runs = machine.runs;
        machine.pass_until(machine.now + 1_000_000, SILENT, 0);
        prop_assert!(machine.runs <= runs + 1, "{} runs while idle", machine.runs - runs);
        prop_assert_eq!((machine.woken, machine.timer), (None, None));
    }

    /// What a round cannot write is tried again, and forgotten by nobody.
    #[test]
    fn what_stays_is_tried_again(writes in writes(), stays in 0..50i64) {
        let mut machine = Machine::new(BOUNDS, 32_000);
        for (gap, pages, device, beside) in writes {
            machine.beside = beside;
            machine.pass_until(machine.now + gap, device, stays);
            machine.write(pages);
            machine.check_somebody_comes();
        }
        let (now, runs) = (machine.now, machine.runs);
        machine.pass_until(now + 10_000, SILENT, stays);
        // At leisure where nothing of it can be written, after a few runs in which something was.
        prop_assert!(machine.runs - runs <= 10 + 8, "{} runs in 10 s", machine.runs - runs);
        machine.pass_until(machine.now + u64::from(STUCK_MS), SILENT, 0);
        prop_assert_eq!(machine.wb.dirty.get(), 0);
    }

    /// However its pages come, a burst costs as many rounds as it fills, and one for the rest.
    #[test]
    fn a_burst_costs_as_many_rounds_as_it_fills(
        writes in prop::collection::vec((0..3u64, 1..600i64), 1..40), bandwidth in 0..10_000_000u64,
        delay_ms in BOUNDS.least_delay_ms..=BOUNDS.most_delay_ms,
    ) {
        let mut machine = Machine::new(Bounds { least_delay_ms: delay_ms, ..BOUNDS }, bandwidth);
        let mut pages = 0;
        for (gap, more) in writes {
            if machine.now + gap >= u64::from(delay_ms) {
                break;
            }
            machine.pass_until(machine.now + gap, SILENT, 0);
            machine.write(more);
            pages += more;
        }
        machine.pass_until(machine.now + 1_000_000, SILENT, 0);
        let most = pages / machine.least_kick_at + 1;
        prop_assert!(machine.rounds <= most, "{} rounds for {pages} pages", machine.rounds);
    }

    /// A writer who stops just below the number of pages that would begin a round is not forgotten,
    /// nor does it ever cause one.
    #[test]
    fn writers_who_stop_in_time_wait_for_the_delay(pauses in prop::collection::vec(0..500u64, 1..20)) {
        let mut machine = Machine::new(BOUNDS, 0);
        for pause in pauses {
            let rounds = machine.rounds;
            let room = machine.wb.kick_at.get() - machine.wb.dirty.get() - 1;
            machine.write(room);
            prop_assert_eq!(machine.woken, None);
            machine.pass_until(machine.now + pause, SILENT, 0);
            let waited = pause >= u64::from(BOUNDS.most_delay_ms);
            prop_assert!(machine.rounds >= rounds + i64::from(waited));
        }
    }

    /// Nothing a device says, and nothing that is believed of it, leads out of the bounds.
    #[test]
    fn the_bounds_are_kept(
        bounds in bounds(), delay_ms in any::<u32>(), device in prop_oneof![Just(SILENT), device()],
        bandwidth in any::<u64>(), background in any::<u64>(), inodes in any::<u32>(),
        by_size in any::<bool>(), average_kib in prop_oneof![Just(0), 1..40_u32, any::<u32>()],
        progress in progress(), queued_pages in prop_oneof![Just(0), any::<u32>()],
        portion in any::<i64>(),
        counts in any::<bool>(),
    ) {
        prop_assert!(bounds.are_valid(12));
        let pace = Pace { delay_ms, average_kib, queued_pages }.after(&bounds, device, by_size);
        prop_assert!((bounds.least_delay_ms..=bounds.most_delay_ms).contains(&pace.delay_ms));
        let at = pace.kick_at(&bounds, bandwidth, background);
        let quarter = i64::try_from(background / 4).unwrap();
        let tiny = (1..TINY_KIB).contains(&u64::from(pace.average_kib));
        let most = bounds.most_pages.min(quarter).max(1);
        prop_assert_eq!(at.most, most);
        for pages in [at.pages, at.with_inodes(&bounds, inodes)] {
            prop_assert!((bounds.least_pages.min(most)..=most).contains(&pages));
        }
        let unseen = pace.average_kib == 0 && counts;
        // A part of a portion is one page at least, of those that there are.
        let portion = if unseen || tiny { portion.max(round::portion(16)) } else { portion };
        match pace.room(DeviceWrites { counts, ..SILENT }, || progress, portion) {
            (seen, Room::Pages(pages)) => {
                prop_assert!(seen.queued_pages >= queued_pages);
                prop_assert_eq!(Pace { queued_pages, ..seen }, pace);
                prop_assert!(pages <= portion && (tiny || unseen || pages == portion));
                prop_assert!(pages > 0 || portion <= 0);
            }
            (_, Room::Busy(milliseconds)) => {
                prop_assert!((tiny || unseen) && (1..=BUSY_MS).contains(&milliseconds.into()));
                prop_assert!(progress.under_way > 0);
            }
        }
    }

    /// More of anything that asks for more pages does not lead to fewer.
    #[test]
    fn more_asks_for_more(
        bounds in bounds(), delays in (any::<u32>(), any::<u32>()),
        bandwidths in (any::<u64>(), any::<u64>()), backgrounds in (any::<u64>(), any::<u64>()),
        inodes in (any::<u32>(), any::<u32>()), average_kib in any::<u32>(),
    ) {
        let order = |(a, b): (u64, u64)| (a.min(b), a.max(b));
        let (short, long) = order((delays.0.into(), delays.1.into()));
        let (slow, fast) = order(bandwidths);
        let (less, more) = order(backgrounds);
        let (few, many) = order((inodes.0.into(), inodes.1.into()));
        let pages = |delay: u64, bandwidth, background, inodes: u64| {
            let delay_ms = u32::try_from(delay).unwrap();
            Pace { delay_ms, average_kib, queued_pages: 0 }
                .kick_at(&bounds, bandwidth, background)
                .with_inodes(&bounds, u32::try_from(inodes).unwrap())
        };
        let least = pages(short, slow, less, few);
        for other in [
            pages(long, slow, less, few),
            pages(short, fast, less, few),
            pages(short, slow, more, few),
            pages(short, slow, less, many),
        ] {
            prop_assert!(least <= other);
        }
    }

    /// Whatever it was, a device whose writes stay small gets the longest delay, and one whose writes
    /// stay large the shortest.
    #[test]
    fn the_delay_settles(bounds in bounds(), delay_ms in any::<u32>(), largest_kib in any::<u64>()) {
        let settled = |kib| {
            let device = DeviceWrites { writes: 10, kib, largest_kib, counts: true };
            (0..15).fold(Pace { delay_ms, average_kib: 0, queued_pages: 0 }, |pace, _| pace.after(&bounds, device, true)).delay_ms
        };
        prop_assert_eq!(settled(0), bounds.most_delay_ms);
        prop_assert_eq!(settled(1 << 20), bounds.least_delay_ms);
    }
}
