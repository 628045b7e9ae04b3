// SPDX-License-Identifier: GPL-2.0

//! Every interleaving of interrupts, workers, a look after the worker, a CPU's removal and a task
//! that waits: each completion is ended once, in order, and none is left behind. Run with
//! `RUSTFLAGS="--cfg loom"`.
//!
//! A mutex stands for the interrupts that are off: nobody else sees a CPU's batch then. Each mutant
//! breaks one order that the protocol depends on; the model has to find it.

#![cfg(loom)]

#[path = "batch/nodes.rs"]
mod nodes;

use loom::sync::atomic::{fence, AtomicBool, AtomicI32, AtomicUsize, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread;
use nodes::{Node, Nodes};
use writeback::batch::{
    begin_wait, end_gathering, may_gather, Batch, Gatherer, List, Moment, Progress, Taken, Todo,
    Waiter,
};

const NODES: usize = 3;
const MOST_NODES: usize = 6;

/// Which order of the protocol is left out.
#[derive(Clone, Copy, PartialEq)]
enum Mutant {
    None,
    /// The worker is queued before the completion is there.
    QueueBeforeAdd,
    /// A worker ends without having looked once more.
    NoRecheck,
    /// A CPU gathers, and lets others know afterwards.
    GatherBeforeAnnouncement,
    /// A CPU gathers, and is counted among those who do afterwards.
    GatherBeforeCounting,
    /// The timer of a gathering that has ended takes its CPU out of the count again.
    EndTwice,
    /// A task looks at who gathers, and is counted afterwards.
    LookBeforeCounting,
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
    /// CPU 0 gathers.
    gathering: AtomicBool,
    /// How many CPUs gather, as those know who start to wait.
    nr_gathering: AtomicI32,
    nr_waiting: AtomicUsize,
    ended: Vec<AtomicUsize>,
}

impl Gatherer for Model {
    fn set_gathering(&self, gathers: bool) -> bool {
        if self.mutant == Mutant::GatherBeforeAnnouncement && gathers {
            return false;
        }
        let did = self.gathering.swap(gathers, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        did || (self.mutant == Mutant::EndTwice && !gathers)
    }

    fn count_gathering(&self, change: i32) {
        if self.mutant != Mutant::GatherBeforeCounting || change < 0 {
            self.nr_gathering.fetch_add(change, Ordering::AcqRel);
            fence(Ordering::SeqCst);
        }
    }

    fn is_anybody_waiting(&self) -> bool {
        self.nr_waiting.load(Ordering::Relaxed) != 0
    }
}

impl Waiter for Model {
    fn count_waiting(&self) {
        if self.mutant != Mutant::LookBeforeCounting {
            self.nr_waiting.fetch_add(1, Ordering::AcqRel);
            fence(Ordering::SeqCst);
        }
    }

    fn is_anybody_gathering(&self) -> bool {
        self.nr_gathering.load(Ordering::Relaxed) != 0
    }

    fn hurry_gathering(&self) {
        if self.gathering.load(Ordering::Relaxed) {
            self.queue(0);
        }
    }
}

impl Model {
    fn new(mutant: Mutant) -> Self {
        Self {
            mutant,
            cpus: Default::default(),
            gathering: AtomicBool::new(false),
            nr_gathering: AtomicI32::new(0),
            nr_waiting: AtomicUsize::new(0),
            ended: (0..=MOST_NODES).map(|_| AtomicUsize::new(0)).collect(),
        }
    }

    fn queue(&self, cpu: usize) {
        self.cpus[cpu].queued.swap(true, Ordering::SeqCst);
    }

    /// An interrupt of CPU 0.
    fn complete(&self, number: usize, can_wait: bool) {
        let node = Node { number, can_wait };
        if self.mutant == Mutant::QueueBeforeAdd {
            self.queue(0);
            let mut batch = self.cpus[0].batch.lock().unwrap();
            if let Err(node) = batch.join(node) {
                batch.add(node, &Once(false));
            }
            return;
        }
        let mut batch = self.cpus[0].batch.lock().unwrap();
        let Err(node) = batch.join(node) else {
            return;
        };
        match batch.add(node, &Once(false)) {
            Todo::Watch => {}
            Todo::Run => self.queue(0),
            Todo::Move => {
                assert!(batch.is_leaving());
                let nodes = batch.leave();
                self.send(nodes);
            }
            Todo::Gather => {
                if !may_gather(self) {
                    end_gathering(self);
                    batch.hurry();
                    self.queue(0);
                }
                match self.mutant {
                    Mutant::GatherBeforeAnnouncement => {
                        self.gathering.swap(true, Ordering::AcqRel);
                    }
                    Mutant::GatherBeforeCounting => {
                        self.nr_gathering.fetch_add(1, Ordering::AcqRel);
                    }
                    _ => {}
                }
            }
        }
    }

    fn wait(&self) {
        begin_wait(self);
        if self.mutant == Mutant::LookBeforeCounting {
            self.nr_waiting.fetch_add(1, Ordering::AcqRel);
        }
    }

    fn end_wait(&self) {
        self.nr_waiting.fetch_sub(1, Ordering::AcqRel);
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
            for Node { number, .. } in nodes.0 {
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

    /// The timer of CPU 0.
    fn time_is_over(&self) {
        let mut batch = self.cpus[0].batch.lock().unwrap();
        end_gathering(self);
        if batch.gathered() {
            self.queue(0);
        }
    }

    fn assert_all_ended_once(&self) {
        self.assert_ended_once(NODES);
    }

    fn assert_ended_once(&self, nodes: usize) {
        for node in 1..=nodes {
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
    (1..=NODES).for_each(|node| model.complete(node, false));
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

/// The third of three runs in a tick is put off, unless somebody waits.
fn a_gathering_and_a_task_that_waits(model: Arc<Model>) {
    let adds = spawn(&model, |model| {
        for node in 1..=NODES {
            model.complete(node, true);
            if node < NODES {
                model.work(0);
            }
        }
    });
    model.wait();
    adds.join().unwrap();
    model.work(0);
    model.assert_all_ended_once();
}

#[test]
fn nothing_gathers_while_somebody_waits() {
    check(Mutant::None, a_gathering_and_a_task_that_waits);
}

/// A gathering that a task has ended leaves its timer behind. When that comes, the next one, which
/// was not to be, has ended as well; and the one after it is as good as the first.
fn a_timer_that_comes_late(model: Arc<Model>) {
    for node in 1..=NODES {
        model.complete(node, true);
        model.work(0);
    }
    model.wait();
    model.work(0);
    model.complete(4, true);
    model.work(0);
    model.time_is_over();
    model.end_wait();
    let adds = spawn(&model, |model| {
        model.complete(5, true);
        model.work(0);
        model.complete(6, true);
    });
    model.wait();
    adds.join().unwrap();
    model.work(0);
    model.assert_ended_once(MOST_NODES);
}

#[test]
fn a_late_timer_changes_nothing() {
    check(Mutant::None, a_timer_that_comes_late);
}

#[test]
fn a_gathering_ends_by_its_timer() {
    check(Mutant::None, |model| {
        let adds = spawn(&model, |model| {
            for node in 1..=NODES {
                model.complete(node, true);
                model.work(0);
            }
        });
        model.time_is_over();
        adds.join().unwrap();
        model.time_is_over();
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

#[test]
#[should_panic(expected = "was left behind")]
fn a_late_announcement_is_caught() {
    check(
        Mutant::GatherBeforeAnnouncement,
        a_gathering_and_a_task_that_waits,
    );
}

#[test]
#[should_panic(expected = "was left behind")]
fn a_gathering_that_is_counted_late_is_caught() {
    check(
        Mutant::GatherBeforeCounting,
        a_gathering_and_a_task_that_waits,
    );
}

#[test]
#[should_panic(expected = "was left behind")]
fn a_gathering_that_ends_twice_is_caught() {
    check(Mutant::EndTwice, a_timer_that_comes_late);
}

#[test]
#[should_panic(expected = "was left behind")]
fn a_late_counting_is_caught() {
    check(
        Mutant::LookBeforeCounting,
        a_gathering_and_a_task_that_waits,
    );
}
