// SPDX-License-Identifier: GPL-2.0

//! Every interleaving of writers, of pages that come from another wb, of an inode that gets into
//! the flusher's lists, and of the flusher: no page that was dirtied before a kick, or that came,
//! is missed by the round that follows. Run with `RUSTFLAGS="--cfg loom"`.
//!
//! Each mutant breaks one order that the protocol depends on; the model has to find it.

#![cfg(loom)]

use loom::sync::atomic::{fence, AtomicBool, AtomicI64, AtomicUsize, Ordering};
use loom::sync::Arc;
use loom::thread;
use writeback::kick::{consume, kick, leave, Wb};

const WRITERS: usize = 2;

/// Which order of the protocol is left out.
#[derive(Clone, Copy, PartialEq)]
enum Mutant {
    None,
    /// The flusher reads the sum and takes the request afterwards.
    ClearAfterSum,
    /// The writer looks at the bit without having ordered its counting before.
    NoBarrier,
    /// Who finds it noted that pages are left orders nothing.
    NoBarrierIfNoted,
    /// The writer asks the wb alone whether anything is dirty.
    NoLookAtPages,
    /// A flusher that finds no dirty inode rests, whatever is counted.
    RestsWithoutInodes,
}

struct Model {
    mutant: Mutant,
    pending: AtomicBool,
    left: AtomicBool,
    /// The inode of all pages is in the flusher's lists.
    listed: AtomicBool,
    /// Dirtied pages, one counter a writer, as the kernel has one a CPU.
    dirtied: [AtomicI64; WRITERS],
    /// Pages that a round of the flusher covered.
    written: AtomicI64,
    wakeups: AtomicUsize,
}

/// A read-modify-write that is a full barrier, as those of the kernel are.
fn swap(bit: &AtomicBool, value: bool) -> bool {
    fence(Ordering::SeqCst);
    let was = bit.swap(value, Ordering::AcqRel);
    fence(Ordering::SeqCst);
    was
}

impl Wb for Model {
    fn order_after_dirtying(&self) {
        if self.mutant != Mutant::NoBarrier {
            fence(Ordering::SeqCst);
        }
    }

    fn has_dirty_io(&self) -> bool {
        self.listed.load(Ordering::Relaxed)
    }

    fn is_pending(&self) -> bool {
        self.pending.load(Ordering::Relaxed)
    }

    fn test_and_set_pending(&self) -> bool {
        swap(&self.pending, true)
    }

    fn test_and_clear_pending(&self) -> bool {
        swap(&self.pending, false)
    }

    fn set_left(&self) {
        if self.mutant != Mutant::NoBarrierIfNoted || !self.left.load(Ordering::Relaxed) {
            swap(&self.left, true);
        }
    }

    fn take_left(&self) -> bool {
        self.left.load(Ordering::Relaxed) && swap(&self.left, false)
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

impl Model {
    fn new(mutant: Mutant) -> Self {
        Self {
            mutant,
            pending: AtomicBool::new(false),
            left: AtomicBool::new(false),
            listed: AtomicBool::new(true),
            dirtied: [const { () }; WRITERS].map(|()| AtomicI64::new(0)),
            written: AtomicI64::new(0),
            wakeups: AtomicUsize::new(0),
        }
    }

    fn write_one_page(&self, cpu: usize) {
        self.dirtied[cpu].fetch_add(1, Ordering::Relaxed);
        // The page that was just dirtied, by the same thread.
        if kick(self, || self.mutant != Mutant::NoLookAtPages) {
            self.wakeups.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn one_page_comes(&self, cpu: usize) {
        self.dirtied[cpu].fetch_add(1, Ordering::Relaxed);
        self.set_left();
    }

    fn flusher_round(&self) {
        let pages = if self.mutant == Mutant::ClearAfterSum {
            let pages = self.dontcache_dirty();
            if self.test_and_clear_pending() {
                pages
            } else {
                0
            }
        } else {
            consume(self)
        };
        self.written.fetch_add(pages, Ordering::Relaxed);
    }

    /// The flusher runs and rests: whether it will run again by itself.
    fn flusher_run(&self) -> bool {
        let pages = consume(self);
        let listed = self.has_dirty_io();
        if listed {
            self.written.fetch_add(pages, Ordering::Relaxed);
        } else {
            // Others have written whatever this is for, or it is not to be found yet.
            consume(self);
        }
        (listed || self.mutant != Mutant::RestsWithoutInodes) && leave(self)
    }
}

fn check(mutant: Mutant) {
    loom::model(move || {
        let model = Arc::new(Model::new(mutant));
        let writers: Vec<_> = (0..WRITERS)
            .map(|cpu| {
                let model = model.clone();
                thread::spawn(move || model.write_one_page(cpu))
            })
            .collect();
        // A round that a request from before the model began has already woken.
        model.flusher_round();
        for writer in writers {
            writer.join().unwrap();
        }
        // The round that the last wake-up leads to; without a request there is none.
        model.flusher_round();
        assert_eq!(
            model.dontcache_dirty(),
            0,
            "a page dirtied before a kick was missed"
        );
        assert!(
            !model.pending.load(Ordering::Relaxed),
            "a request was left behind"
        );
        assert!(
            model.wakeups.load(Ordering::Relaxed) > 0,
            "nobody woke the flusher"
        );
    });
}

/// Pages come while others are left and somebody writes. Whoever has moved their inode wakes the
/// flusher, which does not rest in between: it looks between two portions of other work.
fn check_coming(mutant: Mutant) {
    loom::model(move || {
        let model = Arc::new(Model::new(mutant));
        model.one_page_comes(0);
        let others = [Model::write_one_page, Model::one_page_comes].map(|action| {
            let model = model.clone();
            thread::spawn(move || action(&model, 1))
        });
        model.flusher_round();
        for other in others {
            other.join().unwrap();
        }
        model.flusher_round();
        assert_eq!(model.dontcache_dirty(), 0, "a page that came was missed");
    });
}

/// Somebody has dirtied the inode, which is not in a list yet, when a writer finds it dirty and
/// leaves the rest to him.
fn check_unlisted(mutant: Mutant) {
    loom::model(move || {
        let model = Arc::new(Model::new(mutant));
        model.listed.store(false, Ordering::Relaxed);
        let lister = {
            let model = model.clone();
            thread::spawn(move || model.listed.store(true, Ordering::Relaxed))
        };
        let writer = {
            let model = model.clone();
            thread::spawn(move || model.write_one_page(0))
        };
        let woken = || model.wakeups.swap(0, Ordering::AcqRel) > 0;
        let again = woken() && model.flusher_run();
        lister.join().unwrap();
        writer.join().unwrap();
        if woken() || again {
            model.flusher_run();
        }
        assert_eq!(model.dontcache_dirty(), 0, "a page was left to rest");
    });
}

#[test]
fn no_page_is_missed() {
    check(Mutant::None);
}

#[test]
#[should_panic(expected = "a page dirtied before a kick was missed")]
fn a_request_taken_after_the_sum_is_caught() {
    check(Mutant::ClearAfterSum);
}

#[test]
#[should_panic(expected = "a page dirtied before a kick was missed")]
fn a_missing_barrier_is_caught() {
    check(Mutant::NoBarrier);
}

#[test]
fn no_page_that_comes_is_missed() {
    check_coming(Mutant::None);
}

#[test]
#[should_panic(expected = "a page that came was missed")]
fn a_missing_barrier_where_pages_are_left_is_caught() {
    check_coming(Mutant::NoBarrierIfNoted);
}

#[test]
fn no_page_of_an_inode_that_is_not_listed_yet_is_missed() {
    check_unlisted(Mutant::None);
}

#[test]
#[should_panic(expected = "a page was left to rest")]
fn a_kick_that_asks_the_wb_alone_is_caught() {
    check_unlisted(Mutant::NoLookAtPages);
}

#[test]
#[should_panic(expected = "a page was left to rest")]
fn a_flusher_that_rests_with_pages_is_caught() {
    check_unlisted(Mutant::RestsWithoutInodes);
}
