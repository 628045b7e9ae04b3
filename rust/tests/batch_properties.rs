// SPDX-License-Identifier: GPL-2.0

//! A batch under any sequence of events: somebody always knows of what waits, and each completion is
//! taken once and in order.

#[path = "batch/nodes.rs"]
mod nodes;

use nodes::Nodes;
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

#[derive(Clone, Copy, Debug)]
enum Event {
    /// So many completions in one interrupt.
    Add(usize),
    /// One comes from another CPU.
    Receive,
    /// A real-time task comes or goes.
    Crowd(bool),
    /// The worker takes once, if it is to run.
    Work,
    /// The worker of a CPU that has gone takes once.
    WorkOfAnother,
    /// The interrupt is over after which a batch is to move.
    Depart,
    /// A tick passes, and somebody looks.
    Tick,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        12 => (1..4usize).prop_map(Event::Add),
        1 => Just(Event::Receive),
        1 => any::<bool>().prop_map(Event::Crowd),
        12 => Just(Event::Work),
        1 => Just(Event::WorkOfAnother),
        4 => Just(Event::Depart),
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
    departing: bool,
    added: usize,
    taken: Vec<usize>,
    sent: Vec<usize>,
}

impl Cpu {
    fn add(&mut self) {
        self.added += 1;
        let now = self.now();
        let Err(number) = self.batch.join(self.added) else {
            return;
        };
        let todo = self.batch.add(number, &now);
        self.act(todo);
    }

    fn receive(&mut self) {
        self.added += 1;
        let mut nodes = Nodes::default();
        nodes.push(self.added);
        let todo = self.batch.receive(nodes, &self.now());
        assert!(todo != Todo::Move || self.crowded);
        self.act(todo);
    }

    fn act(&mut self, todo: Todo) {
        match todo {
            Todo::Watch => {}
            Todo::Run => self.queued = true,
            Todo::Move => self.departing = true,
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
        self.sent.extend(sent.0);
    }

    fn work(&mut self) {
        if self.queued {
            self.queued = self.take();
        }
    }

    /// Whether there may be more.
    fn take(&mut self) -> bool {
        match self.batch.take() {
            Taken::Some(nodes) => self.taken.extend(nodes.0),
            Taken::None => return false,
            Taken::Rest => {}
        }
        true
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Add(nr) => (0..nr).for_each(|_| self.add()),
            Event::Receive => self.receive(),
            Event::Crowd(crowded) => self.crowded = crowded,
            Event::Work => self.work(),
            Event::WorkOfAnother => {
                self.take();
            }
            Event::Depart => {
                if std::mem::take(&mut self.departing) && self.batch.is_leaving() {
                    self.send();
                }
            }
            Event::Tick => {
                self.tick += 1;
                if self.batch.look(&self.now()) == Progress::None {
                    self.send();
                }
            }
        }
    }

    fn assert_somebody_knows(&self) {
        let gone = self.taken.len() + self.sent.len();
        assert!(
            gone == self.added || self.queued || self.departing,
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
    cpu.add();
    while cpu.queued {
        cpu.work();
    }
}

#[test]
fn a_worker_that_runs_for_long_rests() {
    let mut cpu = Cpu::default();
    cpu.add();
    let rests = (0..100).filter(|_| {
        cpu.add();
        cpu.event(Event::Tick);
        cpu.add();
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
    cpu.event(Event::Add(2));
    cpu.event(Event::Depart);
    assert_eq!(cpu.sent, [1, 2]);
    cpu.crowded = false;
    cpu.tick += Now::HZ - 1;
    cpu.add();
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
