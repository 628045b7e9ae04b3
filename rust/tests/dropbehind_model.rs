// SPDX-License-Identifier: GPL-2.0

//! Every interleaving of contexts that put folios into a ring (or replace its first folio if the
//! ring is full) with the worker of the ring. No folio may stay in the ring while the worker is not
//! queued. Run with `RUSTFLAGS="--cfg loom"`.
//!
//! Each mutant omits an order that the protocol depends on. The model has to find the fault of each
//! mutant.

#![cfg(loom)]

use loom::sync::atomic::{fence, AtomicBool, AtomicUsize, Ordering};
use loom::sync::Arc;
use loom::thread;
use writeback::dropbehind::{Count, Ring, Slot, Todo};

const FOLIOS: usize = 3;
/// The worker stops after the folios that were in the ring when it began, but not before it has
/// taken so many folios.
const BATCH: usize = 3;
/// Fewer slots than folios: slots are used again, and the ring may be full.
const SLOTS: usize = 2;

/// Which order is omitted.
#[derive(Clone, Copy, PartialEq)]
enum Mutant {
    Right,
    /// A context that puts a folio into a slot may not see yet how many folios the worker has
    /// taken.
    PutDoesNotAcquire,
    /// The worker does not publish how many folios it has taken when it leaves a slot empty.
    TakeDoesNotRelease,
    /// The worker only reads an empty slot, and does not write to it.
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

    fn exchange(&self, folio: Option<usize>) -> Option<usize> {
        let order = match (self.mutant, folio) {
            (PutDoesNotAcquire, Some(_)) => Ordering::Release,
            (TakeDoesNotRelease, None) => Ordering::Acquire,
            (TakeReads, None) if self.folio.load(Ordering::Acquire) == 0 => return None,
            _ => Ordering::AcqRel,
        };
        match self.folio.swap(folio.unwrap_or(0), order) {
            0 => None,
            first => Some(first),
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

    /// Puts a folio into the ring, and returns the folio that it replaces. No other context puts
    /// folios here, so a slot that `has_room()` has reported stays free.
    fn put(&self, folio: usize) -> Option<usize> {
        let has_room = self.ring().has_room(1);
        let todo = self.ring().put(folio).or_else(|back| {
            assert_eq!((back, has_room), (folio, false), "no slot");
            self.ring().replace(folio)
        });
        match todo {
            Ok(Todo::Nothing) => {}
            Ok(_) => swap(&self.queued, true),
            Err(first) => return Some(first),
        }
        None
    }

    /// Returns the folios that the worker takes. Queues the worker again if it stops before it has
    /// found an empty slot.
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
        assert_eq!(cpu.put(1), None);
        let there = cpu.clone();
        let work = thread::spawn(move || there.work());
        let replaced: Vec<_> = (2..=FOLIOS).filter_map(|folio| cpu.put(folio)).collect();
        let mut done = work.join().unwrap();
        while cpu.queued.load(Ordering::Relaxed) {
            done.extend(cpu.work());
        }
        if !replaced.is_empty() {
            done.extend(replaced);
            done.sort_unstable();
        }
        assert_eq!(done, [1, 2, 3], "a folio stays");
    });
}

#[test]
fn every_folio_is_taken() {
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
