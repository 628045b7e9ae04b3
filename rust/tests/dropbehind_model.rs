// SPDX-License-Identifier: GPL-2.0

//! Every interleaving of contexts that put folios into a ring, and of its worker: no folio stays when
//! the worker is not to run. Run with `RUSTFLAGS="--cfg loom"`.
//!
//! Each mutant leaves out an order that this depends on; the model has to find it.

#![cfg(loom)]

use loom::sync::atomic::{fence, AtomicBool, AtomicUsize, Ordering};
use loom::sync::Arc;
use loom::thread;
use writeback::dropbehind::{Count, Ring, Slot, Todo};

const FOLIOS: usize = 3;
/// The worker takes so many folios before it may stop at those that were there when it began.
const BATCH: usize = 2;
/// Fewer than folios: slots are used again, and the ring may be full.
const SLOTS: usize = 2;

/// Which order is left out.
#[derive(Clone, Copy, PartialEq)]
enum Mutant {
    Right,
    /// A context that finds a slot empty may not know yet what the worker has taken before.
    PutDoesNotAcquire,
    /// The worker does not publish what it has taken when it leaves a slot empty.
    TakeDoesNotRelease,
    /// The worker only reads where there is nothing.
    TakeReads,
}

use Mutant::*;

struct Place {
    mutant: Mutant,
    folio: AtomicUsize,
}

impl Place {
    fn new(mutant: Mutant) -> Self {
        let folio = AtomicUsize::new(0);
        Self { mutant, folio }
    }
}

impl Slot for Place {
    type Item = usize;

    fn has(&self, folio: &usize) -> bool {
        self.folio.load(Ordering::Relaxed) == *folio
    }

    fn is_retry(&self) -> bool {
        self.folio.load(Ordering::Relaxed) != 0
    }

    fn put(&self, folio: usize) -> Result<(), usize> {
        let order = match self.mutant {
            PutDoesNotAcquire => Ordering::Release,
            _ => Ordering::AcqRel,
        };
        self.folio
            .compare_exchange(0, folio, order, Ordering::Relaxed)
            .map(|_| ())
            .map_err(|_| folio)
    }

    fn take(&self) -> Option<usize> {
        let order = match self.mutant {
            TakeDoesNotRelease => Ordering::Acquire,
            _ => Ordering::AcqRel,
        };
        if self.mutant == TakeReads && self.folio.load(Ordering::Acquire) == 0 {
            return None;
        }
        match self.folio.swap(0, order) {
            0 => None,
            folio => Some(folio),
        }
    }
}

struct Number(AtomicUsize);

impl Count for Number {
    fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self, count: usize) {
        self.0.store(count, Ordering::Relaxed);
    }
}

fn swap(bit: &AtomicBool, value: bool) {
    fence(Ordering::SeqCst);
    bit.swap(value, Ordering::AcqRel);
    fence(Ordering::SeqCst);
}

struct Cpu {
    slots: [Place; SLOTS],
    nr_put: Number,
    nr_taken: Number,
    /// The work item is queued. Changed as a workqueue does, with full barriers.
    queued: AtomicBool,
}

impl Cpu {
    fn new(mutant: Mutant) -> Self {
        Self {
            slots: [(); SLOTS].map(|()| Place::new(mutant)),
            nr_put: Number(AtomicUsize::new(0)),
            nr_taken: Number(AtomicUsize::new(0)),
            queued: AtomicBool::new(false),
        }
    }

    fn ring(&self) -> Ring<'_, Place, Number> {
        Ring::new(&self.slots, &self.nr_put, &self.nr_taken)
    }

    /// Whether there was a slot for the folio. Nobody else puts folios here: there is one if it was
    /// said before.
    fn put(&self, folio: usize) -> bool {
        let has_room = self.ring().has_room(1);
        match self.ring().put(folio) {
            Ok(Todo::Nothing) => true,
            Ok(_) => {
                swap(&self.queued, true);
                true
            }
            Err(_) => {
                assert!(!has_room, "no slot");
                false
            }
        }
    }

    /// The folios that the worker takes. It runs again if it has seen no end of them.
    fn work(&self) -> Vec<usize> {
        swap(&self.queued, false);
        let mut taken = Vec::new();
        let mut left = self.ring().waiting();
        loop {
            let Some(folio) = self.ring().take() else {
                return taken;
            };
            taken.push(folio);
            left = left.saturating_sub(1);
            if left == 0 && taken.len() >= BATCH {
                swap(&self.queued, true);
                return taken;
            }
        }
    }
}

fn nothing_stays(mutant: Mutant) {
    loom::model(move || {
        let cpu = Arc::new(Cpu::new(mutant));
        assert!(cpu.put(1));
        let there = cpu.clone();
        let work = thread::spawn(move || there.work());
        let mut put = vec![1];
        put.extend((2..=FOLIOS).filter(|folio| cpu.put(*folio)));
        let mut done = work.join().unwrap();
        while cpu.queued.load(Ordering::Relaxed) {
            done.extend(cpu.work());
        }
        assert_eq!(done, put, "a folio stays");
    });
}

#[test]
fn whatever_is_put_is_taken() {
    nothing_stays(Right);
}

#[test]
#[should_panic(expected = "a folio stays")]
fn a_put_that_does_not_acquire_is_caught() {
    nothing_stays(PutDoesNotAcquire);
}

#[test]
#[should_panic(expected = "a folio stays")]
fn a_worker_that_does_not_release_is_caught() {
    nothing_stays(TakeDoesNotRelease);
}

#[test]
#[should_panic(expected = "a folio stays")]
fn a_worker_that_only_reads_is_caught() {
    nothing_stays(TakeReads);
}
