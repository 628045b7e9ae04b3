// SPDX-License-Identifier: GPL-2.0

//! Every interleaving of writers and the flusher: no page that was dirtied before a kick is missed
//! by the round that follows. Run with `RUSTFLAGS="--cfg loom"`.
//!
//! Each mutant breaks one order that the protocol depends on; the model has to find it.

#![cfg(loom)]

use loom::sync::atomic::{fence, AtomicBool, AtomicI64, AtomicUsize, Ordering};
use loom::sync::Arc;
use loom::thread;
use writeback::kick::{consume, kick, Wb};

const WRITERS: usize = 2;

/// Which order of the protocol is left out.
#[derive(Clone, Copy, PartialEq)]
enum Mutant {
    None,
    /// The flusher reads the sum and takes the request afterwards.
    ClearAfterSum,
    /// The writer looks at the bit without having ordered its counting before.
    NoBarrier,
}

struct Model {
    mutant: Mutant,
    pending: AtomicBool,
    /// Dirtied pages, one counter a writer, as the kernel has one a CPU.
    dirtied: [AtomicI64; WRITERS],
    /// Pages that a round of the flusher covered.
    written: AtomicI64,
    wakeups: AtomicUsize,
}

impl Wb for Model {
    fn order_after_dirtying(&self) {
        if self.mutant != Mutant::NoBarrier {
            fence(Ordering::SeqCst);
        }
    }

    fn has_dirty_io(&self) -> bool {
        true
    }

    fn is_pending(&self) -> bool {
        self.pending.load(Ordering::Relaxed)
    }

    fn test_and_set_pending(&self) -> bool {
        fence(Ordering::SeqCst);
        let was = self.pending.swap(true, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        was
    }

    fn test_and_clear_pending(&self) -> bool {
        fence(Ordering::SeqCst);
        let was = self.pending.swap(false, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        was
    }

    // The flusher alone looks at what is left: nothing to interleave.
    fn set_left(&self) {}

    fn take_left(&self) -> bool {
        false
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
            dirtied: [const { () }; WRITERS].map(|()| AtomicI64::new(0)),
            written: AtomicI64::new(0),
            wakeups: AtomicUsize::new(0),
        }
    }

    fn write_one_page(&self, cpu: usize) {
        self.dirtied[cpu].fetch_add(1, Ordering::Relaxed);
        if kick(self) {
            self.wakeups.fetch_add(1, Ordering::Relaxed);
        }
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
