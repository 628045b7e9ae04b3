// SPDX-License-Identifier: GPL-2.0

//! Every interleaving of interrupts that leave things for a task, and of the work that does them: no
//! thing stays when no work is to begin. Run with `RUSTFLAGS="--cfg loom"`.
//!
//! Each mutant leaves out an order that this depends on; the model has to find it.

#![cfg(loom)]

use loom::sync::atomic::{fence, AtomicBool, AtomicUsize, Ordering};
use loom::sync::Arc;
use loom::thread;
use writeback::queue::{Count, Queue, Slot, Todo};

const THINGS: usize = 3;
/// Fewer than things: places are used again, and the queue may be full.
const PLACES: usize = 2;

/// Which order is left out.
#[derive(Clone, Copy, PartialEq)]
enum Mutant {
    Right,
    /// An interrupt that finds a place empty may not know yet what the work has taken before.
    PutDoesNotAcquire,
    /// The work tells nobody what it has taken when it leaves a place empty.
    TakeDoesNotRelease,
    /// The work only reads where there is nothing.
    TakeReads,
}

use Mutant::*;

struct Place {
    mutant: Mutant,
    thing: AtomicUsize,
}

impl Place {
    fn new(mutant: Mutant) -> Self {
        let thing = AtomicUsize::new(0);
        Self { mutant, thing }
    }
}

impl Slot for Place {
    type Item = usize;

    fn weight(_thing: &usize) -> usize {
        1
    }

    fn put(&self, thing: usize) -> Result<(), usize> {
        let order = match self.mutant {
            PutDoesNotAcquire => Ordering::Release,
            _ => Ordering::AcqRel,
        };
        self.thing
            .compare_exchange(0, thing, order, Ordering::Relaxed)
            .map(|_| ())
            .map_err(|_| thing)
    }

    fn take(&self) -> Option<usize> {
        let order = match self.mutant {
            TakeDoesNotRelease => Ordering::Acquire,
            _ => Ordering::AcqRel,
        };
        if self.mutant == TakeReads && self.thing.load(Ordering::Acquire) == 0 {
            return None;
        }
        match self.thing.swap(0, order) {
            0 => None,
            thing => Some(thing),
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
    places: [Place; PLACES],
    nr_put: Number,
    nr_taken: Number,
    /// The work is queued. Changed as a workqueue does, with full barriers.
    queued: AtomicBool,
}

impl Cpu {
    fn new(mutant: Mutant) -> Self {
        Self {
            places: [(); PLACES].map(|()| Place::new(mutant)),
            nr_put: Number(AtomicUsize::new(0)),
            nr_taken: Number(AtomicUsize::new(0)),
            queued: AtomicBool::new(false),
        }
    }

    fn queue(&self) -> Queue<'_, Place, Number> {
        Queue::new(&self.places, &self.nr_put, &self.nr_taken)
    }

    /// Whether there was a place for the thing. Nobody else puts things here: there is one if it was
    /// said before.
    fn interrupt(&self, thing: usize) -> bool {
        let has_room = self.queue().has_room(1);
        match self.queue().put(thing) {
            Ok(Todo::Nothing) => true,
            Ok(_) => {
                swap(&self.queued, true);
                true
            }
            Err(_) => {
                assert!(!has_room, "no place");
                false
            }
        }
    }

    /// The things that the work finds, which is queued no more when it begins.
    fn work(&self) -> Vec<usize> {
        swap(&self.queued, false);
        std::iter::from_fn(|| self.queue().take()).collect()
    }
}

fn nothing_stays(mutant: Mutant) {
    loom::model(move || {
        let cpu = Arc::new(Cpu::new(mutant));
        assert!(cpu.interrupt(1));
        let there = cpu.clone();
        let work = thread::spawn(move || there.work());
        let mut put = vec![1];
        put.extend((2..=THINGS).filter(|thing| cpu.interrupt(*thing)));
        let mut done = work.join().unwrap();
        if cpu.queued.load(Ordering::Relaxed) {
            done.extend(cpu.work());
        }
        assert_eq!(done, put, "a thing stays");
    });
}

#[test]
fn whatever_is_put_is_taken() {
    nothing_stays(Right);
}

#[test]
#[should_panic(expected = "a thing stays")]
fn an_interrupt_that_does_not_acquire_is_caught() {
    nothing_stays(PutDoesNotAcquire);
}

#[test]
#[should_panic(expected = "a thing stays")]
fn a_work_that_does_not_release_is_caught() {
    nothing_stays(TakeDoesNotRelease);
}

#[test]
#[should_panic(expected = "a thing stays")]
fn a_work_that_only_reads_is_caught() {
    nothing_stays(TakeReads);
}
