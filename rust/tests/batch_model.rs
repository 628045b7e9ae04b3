// SPDX-License-Identifier: GPL-2.0

//! Every interleaving of interrupts, workers, a look after the worker and a CPU's removal: each
//! completion is ended once, in order, and none is left behind. Run with `RUSTFLAGS="--cfg loom"`.
//!
//! A mutex stands for the interrupts that are off: nobody else sees a CPU's batch then. Each mutant
//! breaks one order that the protocol depends on; the model has to find it.

#![cfg(loom)]

#[path = "batch/nodes.rs"]
mod nodes;

use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;
use nodes::Nodes;
use writeback::batch::{Batch, List, Moment, Progress, Taken, Todo};

const NODES: usize = 3;

/// Which order of the protocol is left out.
#[derive(Clone, Copy, PartialEq)]
enum Mutant {
    None,
    /// The worker is queued before the completion is there.
    QueueBeforeAdd,
    /// A worker ends without having looked once more.
    NoRecheck,
}

/// The first tick.
struct Once(bool);

impl Moment for Once {
    const HZ: usize = 1000;

    fn tick(&self) -> usize {
        1
    }

    fn is_crowded(&self) -> bool {
        self.0
    }
}

#[derive(Default)]
struct Cpu {
    batch: Mutex<Batch<Nodes>>,
    /// The worker is queued, and will run once more.
    queued: AtomicBool,
}

struct Model {
    mutant: Mutant,
    cpus: [Cpu; 2],
    ended: Vec<AtomicUsize>,
}

impl Model {
    fn new(mutant: Mutant) -> Self {
        Self {
            mutant,
            cpus: Default::default(),
            ended: (0..=NODES).map(|_| AtomicUsize::new(0)).collect(),
        }
    }

    fn queue(&self, cpu: usize) {
        self.cpus[cpu].queued.swap(true, Ordering::SeqCst);
    }

    /// An interrupt of CPU 0.
    fn complete(&self, number: usize) {
        if self.mutant == Mutant::QueueBeforeAdd {
            self.queue(0);
            let mut batch = self.cpus[0].batch.lock().unwrap();
            if let Err(number) = batch.join(number) {
                batch.add(number, &Once(false));
            }
            return;
        }
        let mut batch = self.cpus[0].batch.lock().unwrap();
        let Err(number) = batch.join(number) else {
            return;
        };
        match batch.add(number, &Once(false)) {
            Todo::Watch => {}
            Todo::Run => self.queue(0),
            Todo::Move => {
                assert!(batch.is_leaving());
                let nodes = batch.leave();
                self.send(nodes);
            }
        }
    }

    /// One run of a CPU's worker, if it is queued.
    fn work(&self, cpu: usize) {
        if !self.cpus[cpu].queued.swap(false, Ordering::SeqCst) {
            return;
        }
        let mut last = 0;
        loop {
            let nodes = match self.cpus[cpu].batch.lock().unwrap().take() {
                Taken::Some(nodes) => nodes,
                Taken::None => return,
                Taken::Rest => {
                    self.queue(cpu);
                    return;
                }
            };
            for number in nodes.0 {
                assert!(number > last, "{number} was ended after {last}");
                self.ended[number].fetch_add(1, Ordering::Relaxed);
                last = number;
            }
            if self.mutant == Mutant::NoRecheck {
                return;
            }
        }
    }

    /// CPU 1 gets what waits on CPU 0, which sends one thing after the other.
    fn send(&self, nodes: Nodes) {
        if nodes.is_empty() {
            return;
        }
        let todo = self.cpus[1]
            .batch
            .lock()
            .unwrap()
            .receive(nodes, &Once(false));
        if todo == Todo::Run {
            self.queue(1);
        }
    }

    fn look(&self) {
        let mut batch = self.cpus[0].batch.lock().unwrap();
        if batch.look(&Once(true)) == Progress::None {
            let nodes = batch.leave();
            self.send(nodes);
        }
    }

    fn assert_all_ended_once(&self) {
        for node in 1..=NODES {
            let times = self.ended[node].load(Ordering::Relaxed);
            assert!(times > 0, "{node} was left behind");
            assert_eq!(times, 1, "{node} was ended again");
        }
    }
}

fn check(mutant: Mutant, run: impl Fn(Arc<Model>) + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.max_branches = 100_000;
    builder.check(move || run(Arc::new(Model::new(mutant))));
}

fn spawn(model: &Arc<Model>, what: fn(&Model)) -> thread::JoinHandle<()> {
    let model = model.clone();
    thread::spawn(move || what(&model))
}

fn interrupts(model: &Model) {
    (1..=NODES).for_each(|node| model.complete(node));
}

/// The run that the last queueing leads to; without one there is none.
fn settle(model: &Model) {
    model.work(0);
    model.work(1);
    model.assert_all_ended_once();
}

fn a_worker_and_interrupts(model: Arc<Model>) {
    let adds = spawn(&model, interrupts);
    model.work(0);
    adds.join().unwrap();
    settle(&model);
}

#[test]
fn each_is_ended_once_and_in_order() {
    check(Mutant::None, a_worker_and_interrupts);
}

#[test]
fn the_batch_moves_where_the_worker_does_not_run() {
    check(Mutant::None, |model| {
        let adds = spawn(&model, interrupts);
        let looks = spawn(&model, |model| {
            model.look();
            model.look();
            model.work(1);
        });
        model.work(0);
        adds.join().unwrap();
        looks.join().unwrap();
        settle(&model);
    });
}

#[test]
fn a_cpu_that_goes_leaves_nothing() {
    check(Mutant::None, |model| {
        let removal = spawn(&model, |model| {
            interrupts(model);
            let nodes = model.cpus[0].batch.lock().unwrap().retire();
            model.send(nodes);
        });
        model.work(0);
        removal.join().unwrap();
        model.work(1);
        settle(&model);
    });
}

#[test]
#[should_panic(expected = "was left behind")]
fn a_worker_queued_before_the_addition_is_caught() {
    check(Mutant::QueueBeforeAdd, a_worker_and_interrupts);
}

#[test]
#[should_panic(expected = "was left behind")]
fn a_forgotten_recheck_is_caught() {
    check(Mutant::NoRecheck, a_worker_and_interrupts);
}
