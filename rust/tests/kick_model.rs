// SPDX-License-Identifier: GPL-2.0

//! Interleavings of writers, of pages that wait for a later round, of an inode that is put into the
//! flusher's lists, and of the flusher and its round: all of two contexts, and with two writers
//! those of at most two preemptions. The rounds that follow must not miss a page that was dirtied
//! before a kick, or a page that was left. Run with `RUSTFLAGS="--cfg loom"`.
//!
//! Each mutant breaks one order that the protocol depends on. The model has to find the fault of
//! each mutant.

#![cfg(loom)]

use loom::sync::atomic::{fence, AtomicBool, AtomicI64, AtomicUsize, Ordering};
use loom::sync::{Arc, Mutex, MutexGuard};
use loom::thread;
use writeback::kick::{ask, before_sleep, consume, ended, is_asked_for, Bit, Wb, DELAY_MS};
use writeback::round::{portion, round, Ended, Flusher, Lists, Purpose, Written};

const WRITERS: usize = 2;

/// Which order of the protocol is broken.
#[derive(Clone, Copy, PartialEq)]
enum Mutant {
    Right,
    /// The flusher reads the sum and takes the request afterwards.
    ClearAfterSum,
    /// The writer does not order its counting before its look at the bit.
    NoBarrier,
    /// A context that finds the delayed bit set executes no barrier.
    NoBarrierIfNoted,
    /// The flusher does not order its look at the delayed bit before its look at the time.
    NoBarrierBeforeTime,
    /// The flusher does not order its change of the threshold before its counting.
    NoBarrierAfterThreshold,
    /// A flusher that finds no inode sleeps, even if pages are counted.
    SleepsWithoutInodes,
    /// A writer does not list its inode.
    NoListing,
    /// A search without result clears the flags of the inode without the lock under which pages
    /// become dirty.
    ForgetsWithoutLock,
    /// The flusher clears the flags of the inode before it searches its pages.
    ForgetsBeforeLooking,
}

use Mutant::*;

/// Where the inode of all pages is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Place {
    Nowhere,
    Ordinary,
    Dontcache,
    Queued,
}

struct Model {
    mutant: Mutant,
    /// Writers request a round after the delay, and do not kick.
    asks: bool,
    /// Delayed pages are not due once the time has been set. Otherwise they always are.
    waits: bool,
    pending: AtomicBool,
    delayed: AtomicBool,
    /// When the delayed pages are due has been set.
    due: AtomicBool,
    /// The threshold of a round that ends.
    threshold: Option<AtomicI64>,
    /// The lock of the lists, and the place of the inode in them.
    place: Mutex<Place>,
    /// The lock of the page cache, and how many of its pages are dirty and dropbehind.
    pages: Mutex<i64>,
    /// The inode may have dirty dropbehind pages.
    dirty: AtomicBool,
    /// The flusher finds these pages.
    listed: AtomicBool,
    /// Dirtied pages, with one counter for each writer, as the kernel has a counter for each CPU.
    dirtied: [AtomicI64; WRITERS],
    /// Pages that a round of the flusher covered.
    written: AtomicI64,
    wakeups: AtomicUsize,
}

/// A read-modify-write that is a full barrier, as in the kernel.
fn swap(bit: &AtomicBool, value: bool) -> bool {
    fence(Ordering::SeqCst);
    let was = bit.swap(value, Ordering::AcqRel);
    fence(Ordering::SeqCst);
    was
}

impl Model {
    fn bit(&self, bit: Bit) -> &AtomicBool {
        match bit {
            Bit::Pending => &self.pending,
            Bit::Delayed => &self.delayed,
        }
    }
}

impl Wb for Model {
    fn order_after_dirtying(&self) {
        if self.mutant != NoBarrier {
            fence(Ordering::SeqCst);
        }
    }

    fn test(&self, bit: Bit) -> bool {
        self.bit(bit).load(Ordering::Relaxed)
    }

    fn test_and_set(&self, bit: Bit) -> bool {
        if self.mutant == NoBarrierIfNoted && bit == Bit::Delayed && self.test(bit) {
            return true;
        }
        swap(self.bit(bit), true)
    }

    fn test_and_clear(&self, bit: Bit) -> bool {
        swap(self.bit(bit), false)
    }

    fn about_dirty(&self) -> i64 {
        self.dontcache_dirty()
    }

    /// Without a threshold, writers may kick while a round runs, too. One page is too few if they
    /// request a round after the delay.
    fn kick_at(&self) -> i64 {
        match &self.threshold {
            Some(threshold) => threshold.load(Ordering::Relaxed),
            None if self.asks => i64::MAX,
            None => 1,
        }
    }

    fn set_kick_at(&self, pages: i64) {
        if let Some(threshold) = &self.threshold {
            threshold.store(pages, Ordering::Relaxed);
        }
        if self.mutant != NoBarrierAfterThreshold {
            fence(Ordering::SeqCst);
        }
    }

    /// The model has no clock.
    fn set_due_in(&self, _milliseconds: u32) {
        self.due.store(true, Ordering::Relaxed);
    }

    fn due_in(&self) -> Option<u32> {
        if self.mutant != NoBarrierBeforeTime {
            fence(Ordering::Acquire);
        }
        (self.waits && self.due.load(Ordering::Relaxed)).then_some(DELAY_MS)
    }

    fn has_queue(&self) -> bool {
        *self.place.lock().unwrap() == Place::Dontcache
    }

    fn dontcache_dirty(&self) -> i64 {
        let dirtied: i64 = self
            .dirtied
            .iter()
            .map(|cpu| cpu.load(Ordering::Relaxed))
            .sum();
        dirtied - self.written.load(Ordering::Relaxed)
    }
}

struct Running(Arc<Model>);

struct Locked<'a> {
    model: &'a Model,
    place: Option<MutexGuard<'a, Place>>,
}

impl Flusher for Running {
    const PORTION: i64 = portion(12);

    type Lists<'a> = Locked<'a>;

    fn lock_lists(&mut self) -> Locked<'_> {
        Locked {
            model: &self.0,
            place: Some(self.0.place.lock().unwrap()),
        }
    }

    fn served_ms_ago(&self) -> u64 {
        0
    }

    fn device_limit(&mut self) -> Result<i64, u32> {
        Ok(Self::PORTION)
    }

    fn others_wait(&self) -> bool {
        false
    }

    fn has_others(&self) -> bool {
        false
    }
}

impl Locked<'_> {
    fn place(&mut self) -> &mut Place {
        self.place.as_mut().unwrap()
    }
}

impl Lists for Locked<'_> {
    fn park(&mut self) {}

    fn next_is_ours(&mut self, _looks: usize) -> Option<bool> {
        (*self.place() == Place::Dontcache).then(|| self.model.look())
    }

    fn queue_next(&mut self) {
        *self.place() = Place::Queued;
    }

    fn leave_next(&mut self) {
        *self.place() = Place::Ordinary;
    }

    /// Writes all pages that are dirty when the write reaches the inode.
    fn write(&mut self, _: i64, _: i64) -> Written {
        drop(self.place.take());
        let written = self.model.clean();
        self.place = Some(self.model.place.lock().unwrap());
        let keeps = self.model.look();
        *self.place() = if keeps {
            self.model.listed.store(true, Ordering::Relaxed);
            Place::Dontcache
        } else {
            Place::Ordinary
        };
        Written {
            pages: written,
            progress: true,
            all: true,
        }
    }

    fn unqueue(&mut self) {
        if *self.place() == Place::Queued {
            *self.place() = Place::Dontcache;
        }
    }
}

impl Model {
    fn new(mutant: Mutant, place: Place) -> Self {
        Self {
            mutant,
            asks: false,
            waits: false,
            pending: AtomicBool::new(false),
            delayed: AtomicBool::new(false),
            due: AtomicBool::new(false),
            threshold: None,
            place: Mutex::new(place),
            pages: Mutex::new(0),
            // The flags may be set because of a page that has been cleaned since.
            dirty: AtomicBool::new(place == Place::Dontcache),
            listed: AtomicBool::new(place == Place::Dontcache),
            dirtied: [const { () }; WRITERS].map(|()| AtomicI64::new(0)),
            written: AtomicI64::new(0),
            wakeups: AtomicUsize::new(0),
        }
    }

    /// A work item that begins sees what was done before it was queued.
    fn take_wakeups(&self) -> usize {
        self.wakeups.swap(0, Ordering::AcqRel)
    }

    /// Whether there are dirty dropbehind pages.
    fn look(&self) -> bool {
        if !self.dirty.load(Ordering::Relaxed) {
            return false;
        }
        let forget = || {
            self.dirty.store(false, Ordering::Relaxed);
            self.listed.store(false, Ordering::Relaxed);
        };
        if self.mutant == ForgetsBeforeLooking {
            forget();
        }
        let pages = self.pages.lock().unwrap();
        if *pages > 0 {
            return true;
        }
        if self.mutant == ForgetsWithoutLock {
            drop(pages);
        }
        forget();
        false
    }

    fn dirty_one_page(&self, cpu: usize) {
        let mut pages = self.pages.lock().unwrap();
        *pages += 1;
        self.dirtied[cpu].fetch_add(1, Ordering::Relaxed);
        self.dirty.store(true, Ordering::Relaxed);
    }

    fn clean(&self) -> i64 {
        let pages = std::mem::take(&mut *self.pages.lock().unwrap());
        self.written.fetch_add(pages, Ordering::Relaxed);
        pages
    }

    /// Lists the inode as `ask_for_round()` in `fs/dontcache_kick.rs` does.
    fn list(&self) {
        let unlisted =
            || self.dirty.load(Ordering::Relaxed) && !self.listed.load(Ordering::Relaxed);
        if self.mutant == NoListing || !unlisted() {
            return;
        }
        let mut place = self.place.lock().unwrap();
        if unlisted() {
            self.listed.store(true, Ordering::Relaxed);
            if *place == Place::Ordinary {
                *place = Place::Dontcache;
            }
        }
    }

    fn write_one_page(&self, cpu: usize) {
        self.dirty_one_page(cpu);
        self.list();
        let _pages = self.pages.lock().unwrap();
        if self.dirty.load(Ordering::Relaxed) && ask(self).is_some() {
            self.wakeups.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// A writer of few pages has listed its inode and found the delayed bit clear. It sets the bit,
    /// whether the bit is still clear or not.
    fn one_page_is_left(&self, cpu: usize) {
        self.dirty_one_page(cpu);
        *self.place.lock().unwrap() = Place::Dontcache;
        self.test_and_set(Bit::Delayed);
    }

    /// The context that has dirtied the inode puts it into a list.
    fn put_into_a_list(&self) {
        let mut place = self.place.lock().unwrap();
        *place = if self.look() {
            self.listed.store(true, Ordering::Relaxed);
            Place::Dontcache
        } else {
            Place::Ordinary
        };
    }

    fn consumed(&self) -> Option<i64> {
        if self.mutant != ClearAfterSum {
            return consume(self);
        }
        let pages = self.dontcache_dirty();
        self.test_and_clear(Bit::Pending).then_some(pages)
    }

    /// The flusher runs, and queues itself if it has to run again.
    fn flusher_runs(model: &Arc<Self>) {
        if let Some(budget) = model.consumed() {
            let written = round(
                &mut Running(model.clone()),
                budget,
                i64::MAX,
                Purpose::Alone,
            );
            if model.mutant != SleepsWithoutInodes {
                ended(&**model, budget, i64::MAX, written);
            }
        }
        if before_sleep(&**model).is_some() {
            model.wakeups.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Checks the state after the flusher has run for all wake-ups.
    fn check_asleep(model: &Arc<Self>, message: &str) {
        let mut runs = 0;
        while model.take_wakeups() > 0 && runs < 4 {
            Self::flusher_runs(model);
            runs += 1;
        }
        assert_eq!(model.dontcache_dirty(), 0, "{message}");
        assert!(!model.pending.load(Ordering::Relaxed), "a request was left");
        assert!(runs < 4, "the flusher does not sleep");
    }
}

/// Writers, and a flusher that runs for an earlier request.
fn check(mutant: Mutant, place: Place, writers: usize) {
    check_writers(mutant, place, writers, false);
}

fn check_writers(mutant: Mutant, place: Place, writers: usize, asks: bool) {
    loom::model(move || {
        let model = Arc::new(Model {
            asks,
            ..Model::new(mutant, place)
        });
        let before = if asks { &model.delayed } else { &model.pending };
        before.store(true, Ordering::Relaxed);
        let writers: Vec<_> = (0..writers)
            .map(|cpu| {
                let model = model.clone();
                thread::spawn(move || model.write_one_page(cpu))
            })
            .collect();
        model.take_wakeups();
        Model::flusher_runs(&model);
        for writer in writers {
            writer.join().unwrap();
        }
        Model::check_asleep(&model, "a page dirtied before a kick was missed");
    });
}

/// Pages are delayed while the flusher runs. It does not sleep in between, because it looks for
/// requests between two portions of other work.
fn check_leaving(mutant: Mutant) {
    loom::model(move || {
        let model = Arc::new(Model::new(mutant, Place::Ordinary));
        model.one_page_is_left(0);
        let other = {
            let model = model.clone();
            thread::spawn(move || model.one_page_is_left(1))
        };
        if let Some(pages) = model.consumed() {
            model.written.fetch_add(pages, Ordering::Relaxed);
        }
        other.join().unwrap();
        if let Some(pages) = model.consumed() {
            model.written.fetch_add(pages, Ordering::Relaxed);
        }
        assert_eq!(
            model.dontcache_dirty(),
            0,
            "a page that was left was missed"
        );
    });
}

/// A writer requests a round after the delay while the flusher runs for other work.
fn check_early(mutant: Mutant) {
    loom::model(move || {
        let model = Arc::new(Model {
            asks: true,
            waits: true,
            ..Model::new(mutant, Place::Ordinary)
        });
        let flusher = {
            let model = model.clone();
            thread::spawn(move || is_asked_for(&*model))
        };
        ask(&*model);
        assert!(
            !flusher.join().unwrap(),
            "a page did not wait for the delay"
        );
    });
}

/// A page reaches the threshold while a round ends.
fn check_end(mutant: Mutant) {
    loom::model(move || {
        let model = Arc::new(Model {
            threshold: Some(AtomicI64::new(i64::MAX)),
            ..Model::new(mutant, Place::Ordinary)
        });
        let writer = {
            let model = model.clone();
            thread::spawn(move || {
                model.dirtied[0].fetch_add(1, Ordering::Relaxed);
                ask(&*model)
            })
        };
        let round = Ended {
            pages: 0,
            again_ms: None,
            progress: false,
        };
        ended(&*model, 0, 1, round);
        writer.join().unwrap();
        let kicked = model.pending.load(Ordering::Relaxed);
        assert!(kicked, "enough pages wait for the delay");
    });
}

/// Another context has dirtied the inode and has not yet put it into a list. A writer finds the
/// inode dirty, so it leaves the listing to that context.
fn check_unlisted(mutant: Mutant) {
    loom::model(move || {
        let model = Arc::new(Model::new(mutant, Place::Nowhere));
        let lister = {
            let model = model.clone();
            thread::spawn(move || model.put_into_a_list())
        };
        let writer = {
            let model = model.clone();
            thread::spawn(move || model.write_one_page(0))
        };
        if model.take_wakeups() > 0 {
            Model::flusher_runs(&model);
        }
        lister.join().unwrap();
        writer.join().unwrap();
        Model::check_asleep(&model, "the flusher sleeps beside a page");
    });
}

#[test]
fn no_page_is_missed() {
    check(Right, Place::Dontcache, 1);
    check(Right, Place::Ordinary, 1);
}

#[test]
fn no_page_that_waits_is_missed() {
    check_writers(Right, Place::Dontcache, 1, true);
    check_writers(Right, Place::Ordinary, 1, true);
}

#[test]
fn no_page_of_two_writers_is_missed() {
    check_two_writers(false);
}

#[test]
fn no_page_of_two_writers_that_waits_is_missed() {
    check_two_writers(true);
}

fn check_two_writers(asks: bool) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = builder.preemption_bound.or(Some(2));
    builder.check(move || {
        let model = Arc::new(Model {
            asks,
            ..Model::new(Right, Place::Ordinary)
        });
        let writers = [0, 1].map(|cpu| {
            let model = model.clone();
            thread::spawn(move || model.write_one_page(cpu))
        });
        model.take_wakeups();
        Model::flusher_runs(&model);
        for writer in writers {
            writer.join().unwrap();
        }
        Model::check_asleep(&model, "a page dirtied before a kick was missed");
    });
}

/// Only the counting, as between two rounds. With the lists, their locks would order the accesses,
/// and hide a missing barrier.
fn check_counting(mutant: Mutant, asks: bool) {
    loom::model(move || {
        let model = Arc::new(Model::new(mutant, Place::Ordinary));
        let writer = {
            let model = model.clone();
            thread::spawn(move || {
                model.dirtied[0].fetch_add(1, Ordering::Relaxed);
                model.order_after_dirtying();
                if asks {
                    !model.test(Bit::Delayed) && !model.test_and_set(Bit::Delayed)
                } else {
                    !model.test(Bit::Pending) && !model.test_and_set(Bit::Pending)
                }
            })
        };
        let before = if asks { &model.delayed } else { &model.pending };
        before.store(true, Ordering::Relaxed);
        let cover = || {
            let pages = model.consumed().unwrap_or(0);
            model.written.fetch_add(pages, Ordering::Relaxed);
        };
        cover();
        writer.join().unwrap();
        cover();
        assert_eq!(
            model.dontcache_dirty(),
            0,
            "a page that was counted was missed"
        );
    });
}

#[test]
fn no_page_that_was_counted_is_missed() {
    check_counting(Right, false);
    check_counting(Right, true);
}

#[test]
#[should_panic(expected = "a page that was counted was missed")]
fn a_request_taken_after_the_sum_is_caught() {
    check_counting(ClearAfterSum, false);
}

#[test]
#[should_panic(expected = "a page that was counted was missed")]
fn a_missing_barrier_is_caught() {
    check_counting(NoBarrier, false);
}

#[test]
#[should_panic(expected = "a page that was counted was missed")]
fn a_missing_barrier_of_a_page_that_waits_is_caught() {
    check_counting(NoBarrier, true);
}

#[test]
fn no_page_that_is_left_is_missed() {
    check_leaving(Right);
}

#[test]
#[should_panic(expected = "a page that was left was missed")]
fn a_missing_barrier_where_pages_are_left_is_caught() {
    check_leaving(NoBarrierIfNoted);
}

#[test]
fn no_page_is_due_before_the_delay() {
    check_early(Right);
}

#[test]
#[should_panic(expected = "a page did not wait for the delay")]
fn a_missing_barrier_before_the_time_is_caught() {
    check_early(NoBarrierBeforeTime);
}

#[test]
fn enough_pages_at_the_end_of_a_round_begin_another() {
    check_end(Right);
}

#[test]
#[should_panic(expected = "enough pages wait for the delay")]
fn a_missing_barrier_after_the_threshold_is_caught() {
    check_end(NoBarrierAfterThreshold);
}

#[test]
fn no_page_of_an_inode_that_is_not_listed_yet_is_missed() {
    check_unlisted(Right);
}

#[test]
#[should_panic(expected = "the flusher sleeps beside a page")]
fn a_flusher_that_sleeps_beside_pages_is_caught() {
    check_unlisted(SleepsWithoutInodes);
}

#[test]
#[should_panic(expected = "a page dirtied before a kick was missed")]
fn a_kick_that_does_not_list_is_caught() {
    check(NoListing, Place::Ordinary, 1);
}

#[test]
#[should_panic(expected = "missed")]
fn forgetting_without_the_lock_is_caught() {
    check(ForgetsWithoutLock, Place::Dontcache, 1);
}

#[test]
#[should_panic(expected = "missed")]
fn forgetting_before_looking_is_caught() {
    check(ForgetsBeforeLooking, Place::Dontcache, 1);
}
