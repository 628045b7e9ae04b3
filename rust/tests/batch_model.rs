// SPDX-License-Identifier: GPL-2.0

//! Every interleaving of additions, workers and the removal of a CPU: each completion is popped
//! once, in order, and none is left behind. Run with `RUSTFLAGS="--cfg loom"`.
//!
//! Each mutant breaks one order that the protocol depends on; the model has to find it.

#![cfg(loom)]

use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::sync::Arc;
use loom::thread;
use writeback::batch::{add, pop, Batch};

const NODES: usize = 3;
const NONE: usize = 0;
const LOCKED: usize = usize::MAX;

/// Which order of the protocol is left out.
#[derive(Clone, Copy, PartialEq)]
enum Mutant {
    None,
    /// The worker is scheduled before the completion is there.
    ScheduleBeforeAdd,
    /// A worker that has found the batch empty ends, and forgets that it was scheduled meanwhile.
    NoRecheck,
    /// The lock of the taken is not waited for.
    NoLock,
}

/// A batch of the nodes 1, 2 and 3, and its worker.
struct Model {
    mutant: Mutant,
    newest: AtomicUsize,
    taken: AtomicUsize,
    next: Vec<AtomicUsize>,
    popped: Vec<AtomicUsize>,
    /// The worker is queued, and will run once more.
    scheduled: AtomicBool,
}

fn node(value: usize) -> Option<usize> {
    (value != NONE).then_some(value)
}

impl Batch for Model {
    type Node = usize;

    fn next(&self, node_: usize) -> Option<usize> {
        node(self.next[node_].load(Ordering::Relaxed))
    }

    fn set_next(&self, node: usize, next: Option<usize>) {
        self.next[node].store(next.unwrap_or(NONE), Ordering::Relaxed);
    }

    fn newest(&self) -> Option<usize> {
        node(self.newest.load(Ordering::Relaxed))
    }

    fn replace_newest(&self, old: Option<usize>, new: usize) -> Result<(), Option<usize>> {
        let (old, order) = (old.unwrap_or(NONE), Ordering::AcqRel);
        let result = self
            .newest
            .compare_exchange(old, new, order, Ordering::Relaxed);
        result.map(drop).map_err(node)
    }

    fn take_added(&self) -> Option<usize> {
        node(self.newest.swap(NONE, Ordering::AcqRel))
    }

    fn lock_taken(&self) -> Option<usize> {
        if self.mutant == Mutant::NoLock {
            return node(self.taken.load(Ordering::Acquire));
        }
        loop {
            match self.taken.swap(LOCKED, Ordering::Acquire) {
                LOCKED => thread::yield_now(),
                value => return node(value),
            }
        }
    }

    fn unlock_taken(&self, oldest: Option<usize>) {
        // A swap, where the kernel stores: loom lets a store be overtaken by an exchange that came
        // before it, and would wait for ever.
        self.taken.swap(oldest.unwrap_or(NONE), Ordering::Release);
    }
}

impl Model {
    fn new(mutant: Mutant) -> Self {
        let zeroes = || (0..=NODES).map(|_| AtomicUsize::new(0)).collect();
        Self {
            mutant,
            newest: AtomicUsize::new(NONE),
            taken: AtomicUsize::new(NONE),
            next: zeroes(),
            popped: zeroes(),
            scheduled: AtomicBool::new(false),
        }
    }

    fn schedule(&self) {
        self.scheduled.swap(true, Ordering::SeqCst);
    }

    fn complete_in_task(&self, node: usize) {
        if self.mutant == Mutant::ScheduleBeforeAdd {
            if self.newest().is_none() {
                self.schedule();
            }
            add(self, node);
        } else if add(self, node) {
            self.schedule();
        }
    }

    /// Pops until there is nothing, in order.
    fn drain(&self) {
        let mut last = NONE;
        while let Some(node) = pop(self) {
            assert!(node > last, "{node} was popped after {last}");
            self.popped[node].fetch_add(1, Ordering::Relaxed);
            last = node;
        }
    }

    /// One run of the worker, if it is scheduled.
    fn work(&self) {
        if self.mutant == Mutant::NoRecheck {
            if self.scheduled.load(Ordering::SeqCst) {
                self.drain();
                self.scheduled.store(false, Ordering::SeqCst);
            }
        } else if self.scheduled.swap(false, Ordering::SeqCst) {
            self.drain();
        }
    }

    fn assert_all_popped_once(&self) {
        for node in 1..=NODES {
            let times = self.popped[node].load(Ordering::Relaxed);
            assert!(times > 0, "{node} was left behind");
            assert_eq!(times, 1, "{node} was popped again");
        }
    }
}

/// Interrupts add, the worker runs whenever it is scheduled, and with `rescue` a second drainer is
/// at the same batch: another CPU's worker, or the removal of this CPU.
fn check(mutant: Mutant, rescue: bool) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.max_branches = 100_000;
    builder.check(move || {
        let model = Arc::new(Model::new(mutant));
        let interrupts = {
            let model = model.clone();
            thread::spawn(move || (1..=NODES).for_each(|node| model.complete_in_task(node)))
        };
        let other = rescue.then(|| {
            let model = model.clone();
            thread::spawn(move || model.drain())
        });
        model.work();
        interrupts.join().unwrap();
        if let Some(other) = other {
            other.join().unwrap();
        }
        // The run that the last scheduling leads to; without one there is none.
        model.work();
        model.assert_all_popped_once();
    });
}

#[test]
fn each_is_popped_once_and_in_order() {
    check(Mutant::None, false);
}

#[test]
fn two_drainers_share_a_batch() {
    check(Mutant::None, true);
}

#[test]
#[should_panic(expected = "was left behind")]
fn a_worker_scheduled_before_the_addition_is_caught() {
    check(Mutant::ScheduleBeforeAdd, false);
}

#[test]
#[should_panic(expected = "was left behind")]
fn a_forgotten_recheck_is_caught() {
    check(Mutant::NoRecheck, false);
}

#[test]
#[should_panic(expected = "was popped again")]
fn a_missing_lock_is_caught() {
    check(Mutant::NoLock, true);
}
