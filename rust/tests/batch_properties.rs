// SPDX-License-Identifier: GPL-2.0

//! A batch under any sequence of events: somebody always knows of what waits, each completion is
//! taken once and in order, and what is put off is what may be.

#[path = "batch/nodes.rs"]
mod nodes;

use nodes::{Node, Nodes};
use proptest::prelude::*;
use writeback::batch::{Batch, List, Moment, Progress, Taken, Todo};

struct Now {
    tick: usize,
    crowded: bool,
}

impl Moment for Now {
    const HZ: usize = 100;

    fn tick(&self) -> usize {
        self.tick
    }

    fn is_crowded(&self) -> bool {
        self.crowded
    }
}

const RUNS: usize = 20;

#[derive(Clone, Copy, Debug)]
enum Event {
    /// So many completions in one interrupt.
    Add(usize, bool),
    /// One comes from another CPU.
    Receive,
    /// A real-time task comes or goes.
    Crowd(bool),
    /// The worker takes once, if it is to run.
    Work,
    /// The timer of a gathering, if there is one.
    Timer,
    /// The interrupt is over after which a batch is to move.
    Depart,
    /// A task begins to wait.
    Wait,
    /// A tick passes, and somebody looks.
    Tick,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        4 => (1..4usize, any::<bool>()).prop_map(|(nr, can_wait)| Event::Add(nr, can_wait)),
        8 => Just(Event::Add(1, true)),
        1 => Just(Event::Receive),
        1 => any::<bool>().prop_map(Event::Crowd),
        12 => Just(Event::Work),
        2 => Just(Event::Timer),
        4 => Just(Event::Depart),
        1 => Just(Event::Wait),
        1 => Just(Event::Tick),
    ];
    prop::collection::vec(event, 1..200)
}

/// A CPU as the edges run it, and what has become of its completions.
#[derive(Default)]
struct Cpu {
    batch: Batch<Nodes>,
    tick: usize,
    crowded: bool,
    queued: bool,
    timer: bool,
    departing: bool,
    added: usize,
    taken: Vec<usize>,
    sent: Vec<usize>,
    /// Runs that began at once in this tick.
    at_once: usize,
    gatherings: usize,
}

impl Cpu {
    fn add(&mut self, can_wait: bool) {
        self.added += 1;
        let node = Node {
            number: self.added,
            can_wait,
        };
        let now = self.now();
        let Err(node) = self.batch.join(node) else {
            return;
        };
        match self.batch.add(node, &now) {
            Todo::Watch => {}
            Todo::Run => {
                self.at_once += 1;
                self.queued = true;
            }
            Todo::Gather => {
                assert!(can_wait, "{} cannot wait, and was put off", self.added);
                assert!(self.at_once >= RUNS, "gathers after {} runs", self.at_once);
                self.gatherings += 1;
                self.timer = true;
            }
            Todo::Move => self.departing = true,
        }
    }

    fn receive(&mut self) {
        self.added += 1;
        let mut nodes = Nodes::default();
        nodes.push(Node {
            number: self.added,
            can_wait: true,
        });
        match self.batch.receive(nodes, &self.now()) {
            Todo::Watch => {}
            Todo::Run => self.queued = true,
            Todo::Gather => panic!("{} was put off", self.added),
            Todo::Move => {
                assert!(self.crowded);
                self.departing = true;
            }
        }
    }

    fn now(&self) -> Now {
        Now {
            tick: self.tick,
            crowded: self.crowded,
        }
    }

    fn send(&mut self) {
        let sent = self.batch.leave();
        self.sent.extend(sent.0.iter().map(|node| node.number));
    }

    fn work(&mut self) {
        if !self.queued {
            return;
        }
        match self.batch.take() {
            Taken::Some(nodes) => self.taken.extend(nodes.0.iter().map(|node| node.number)),
            Taken::None => self.queued = false,
            Taken::Rest => {}
        }
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Add(nr, can_wait) => (0..nr).for_each(|_| self.add(can_wait)),
            Event::Receive => self.receive(),
            Event::Crowd(crowded) => self.crowded = crowded,
            Event::Work => self.work(),
            Event::Timer if self.timer => {
                self.timer = false;
                self.queued |= self.batch.gathered();
            }
            Event::Timer => {}
            Event::Depart => {
                if std::mem::take(&mut self.departing) && self.batch.is_leaving() {
                    self.send();
                }
            }
            Event::Wait => self.queued |= self.timer,
            Event::Tick => {
                self.tick += 1;
                self.at_once = 0;
                if self.batch.look(&self.now()) == Progress::None {
                    self.send();
                }
            }
        }
    }

    fn assert_somebody_knows(&self) {
        let gone = self.taken.len() + self.sent.len();
        assert!(
            gone == self.added || self.queued || self.timer || self.departing,
            "{} of {} are gone, and nobody comes",
            gone,
            self.added
        );
    }
}

fn is_in_order(numbers: &[usize]) -> bool {
    numbers.windows(2).all(|pair| pair[0] < pair[1])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn nothing_is_left_behind(events in events()) {
        let mut cpu = Cpu::default();
        for event in events {
            cpu.event(event);
            cpu.assert_somebody_knows();
        }
        cpu.event(Event::Timer);
        cpu.event(Event::Depart);
        // A run that ends with a rest is followed by another.
        (0..5).for_each(|_| cpu.work());
        prop_assert!(is_in_order(&cpu.taken) && is_in_order(&cpu.sent));
        let mut all: Vec<_> = cpu.taken.iter().chain(&cpu.sent).copied().collect();
        all.sort_unstable();
        prop_assert_eq!(all, (1..=cpu.added).collect::<Vec<_>>());
    }
}

/// Completions that come alone, each after the worker has ended.
fn alone(cpu: &mut Cpu) {
    cpu.add(true);
    while cpu.queued {
        cpu.work();
    }
}

#[test]
fn a_gathering_follows_many_runs() {
    let mut cpu = Cpu::default();
    (0..RUNS).for_each(|_| alone(&mut cpu));
    assert!(!cpu.timer);
    (0..5).for_each(|_| alone(&mut cpu));
    assert!(cpu.timer && cpu.gatherings == 1);
    cpu.event(Event::Timer);
    alone(&mut cpu);
    assert_eq!(cpu.taken.len(), cpu.added);
    alone(&mut cpu);
    assert!(
        cpu.timer,
        "one that gained something is followed by another"
    );
}

#[test]
fn gatherings_that_gain_nothing_become_rare() {
    let mut cpu = Cpu::default();
    for _ in 0..1000 {
        cpu.event(Event::Tick);
        for _ in 0..2 * RUNS {
            alone(&mut cpu);
            cpu.event(Event::Timer);
            while cpu.queued {
                cpu.work();
            }
        }
    }
    assert!((10..30).contains(&cpu.gatherings), "{}", cpu.gatherings);
}

#[test]
fn a_worker_that_runs_for_long_rests() {
    let mut cpu = Cpu::default();
    cpu.add(true);
    let rests = (0..100).filter(|_| {
        cpu.add(true);
        cpu.event(Event::Tick);
        cpu.add(false);
        let rests = matches!(cpu.batch.take(), Taken::Rest);
        rests
    });
    assert!(rests.count() > 10);
}

#[test]
fn a_batch_moves_for_a_second_once_it_was_crowded() {
    let mut cpu = Cpu {
        crowded: true,
        ..Cpu::default()
    };
    cpu.event(Event::Add(2, false));
    cpu.event(Event::Depart);
    assert_eq!(cpu.sent, [1, 2]);
    cpu.crowded = false;
    cpu.tick += Now::HZ - 1;
    cpu.add(false);
    cpu.event(Event::Depart);
    assert_eq!(cpu.sent, [1, 2, 3]);
    cpu.tick += 1;
    alone(&mut cpu);
    assert_eq!((cpu.sent.len(), cpu.taken.len()), (3, 1));
}

#[test]
fn what_comes_to_a_crowded_cpu_moves_on() {
    let mut cpu = Cpu {
        crowded: true,
        ..Cpu::default()
    };
    cpu.receive();
    cpu.receive();
    cpu.event(Event::Depart);
    assert_eq!(cpu.sent, [1, 2]);
    cpu.crowded = false;
    cpu.receive();
    assert!(cpu.queued, "it is the worker's where that gets its CPU");
}
