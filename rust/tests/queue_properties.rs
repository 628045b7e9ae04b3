// SPDX-License-Identifier: GPL-2.0

//! Things come out as they went in, each once, and as many as fit; somebody is told to take them.

#![cfg(not(loom))]

use proptest::prelude::*;
use std::cell::{Cell, RefCell};
use writeback::queue::{small, weight, Count, Queue, Slot, Todo};

const PLACES: usize = 8;

#[derive(Default)]
struct Place(RefCell<Option<u32>>);

impl Slot for Place {
    type Item = u32;

    fn weight(item: &u32) -> usize {
        *item as usize % 3 + 1
    }

    fn put(&self, item: u32) -> Result<(), u32> {
        let mut place = self.0.borrow_mut();
        if place.is_some() {
            return Err(item);
        }
        *place = Some(item);
        Ok(())
    }

    fn take(&self) -> Option<u32> {
        self.0.borrow_mut().take()
    }
}

struct Number(Cell<usize>);

impl Count for Number {
    fn get(&self) -> usize {
        self.0.get()
    }

    fn set(&self, count: usize) {
        self.0.set(count);
    }
}

#[derive(Clone, Debug)]
enum Step {
    Put,
    Take,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![3 => Just(Step::Put), 2 => Just(Step::Take)];
    prop::collection::vec(step, 0..200)
}

proptest! {
    #[test]
    fn first_in_first_out(steps in steps(), begin in prop_oneof![Just(0), usize::MAX - 20..=usize::MAX]) {
        let places: [Place; PLACES] = Default::default();
        let (nr_put, nr_taken) = (Number(Cell::new(begin)), Number(Cell::new(begin)));
        let queue = Queue::new(&places, &nr_put, &nr_taken);
        let mut there = std::collections::VecDeque::new();
        for (number, step) in (0..).zip(steps) {
            let (filled, more) = (there.iter().map(Place::weight).sum::<usize>(), Place::weight(&number));
            prop_assert!(queue.has_room(PLACES - filled));
            prop_assert!(!queue.has_room(PLACES - filled + 1));
            match step {
                Step::Put if filled + more > PLACES => prop_assert_eq!(queue.put(number), Err(number)),
                Step::Put => {
                    there.push_back(number);
                    let todo = match filled {
                        0 => Todo::Soon,
                        1..=3 if filled + more >= 4 => Todo::Now,
                        _ => Todo::Nothing,
                    };
                    prop_assert_eq!(queue.put(number), Ok(todo));
                }
                Step::Take => prop_assert_eq!(queue.take(), there.pop_front()),
            }
        }
    }
}

#[test]
fn a_queue_without_places_gives_back() {
    let (nr_put, nr_taken) = (Number(Cell::new(0)), Number(Cell::new(0)));
    let queue = Queue::<Place, Number>::new(&[], &nr_put, &nr_taken);
    assert_eq!(queue.put(1), Err(1));
    assert_eq!(queue.take(), None);
    assert!(!queue.has_room(1));
}

#[test]
fn a_page_is_small() {
    assert_eq!([4, 16, 64].map(|kib| small(kib << 10) >> 10), [16, 16, 64]);
    assert_eq!([4, 16, 64].map(|kib| weight(kib << 10)), [1, 4, 16]);
}
