// SPDX-License-Identifier: GPL-2.0

//! What could not be done is tried again, in time and for a time, and no more is kept than fits.

#![cfg(not(loom))]

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use writeback::later::{is_end, keep, try_all, wait, Item, Place};

const HZ: usize = 1000;

/// Somebody is in the way until then. Writes down when it is tried.
#[derive(Clone)]
struct Thing {
    clock: Rc<Cell<usize>>,
    until: usize,
    tried: Rc<RefCell<Vec<usize>>>,
    /// It was told that there is no other try.
    last: Rc<Cell<bool>>,
}

impl Thing {
    fn new(clock: &Rc<Cell<usize>>, until: usize) -> Self {
        Self {
            clock: clock.clone(),
            until,
            tried: Rc::default(),
            last: Rc::default(),
        }
    }
}

impl Item for Thing {
    fn try_to_do(&self, last: bool) -> bool {
        self.tried.borrow_mut().push(self.clock.get());
        self.last.set(last);
        self.clock.get() >= self.until
    }
}

#[derive(Default)]
struct Slot(RefCell<Option<(Thing, usize)>>);

impl Place for Slot {
    type Item = Thing;

    fn put(&self, item: Thing, since: usize) -> Result<(), Thing> {
        let mut slot = self.0.borrow_mut();
        if slot.is_some() {
            return Err(item);
        }
        *slot = Some((item, since));
        Ok(())
    }

    fn has(&self, item: &Thing) -> bool {
        let slot = self.0.borrow();
        slot.as_ref()
            .is_some_and(|(thing, _)| Rc::ptr_eq(&thing.tried, &item.tried))
    }

    fn take(&self) -> Option<(Thing, usize)> {
        self.0.borrow_mut().take()
    }
}

fn places<const NR: usize>() -> [Slot; NR] {
    std::array::from_fn(|_| Slot::default())
}

fn is_empty(places: &[Slot]) -> bool {
    places.iter().all(|place| place.0.borrow().is_none())
}

/// The work, from now on until nothing is left.
fn work(clock: &Cell<usize>, places: &[Slot]) {
    for tries in 0.. {
        clock.set(clock.get().wrapping_add(wait(tries) as usize));
        if !try_all(places, || clock.get(), HZ) {
            break;
        }
    }
}

#[test]
fn one_is_tried_ten_times_in_a_second() {
    let clock = Rc::new(Cell::new(usize::MAX - 5));
    let begin = clock.get();
    let thing = Thing::new(&clock, usize::MAX);
    let places = places::<4>();
    assert!(keep(&places, thing.clone(), begin).is_ok());
    work(&clock, &places);
    let times: Vec<_> = thing
        .tried
        .borrow()
        .iter()
        .map(|at| at.wrapping_sub(begin))
        .collect();
    assert_eq!(times, [1, 3, 7, 15, 31, 63, 127, 255, 511, 1023]);
    assert!(thing.last.get());
    assert!(is_empty(&places));
}

#[test]
fn one_that_can_be_done_is_gone() {
    let clock = Rc::new(Cell::new(0));
    let things = [0, 20, 400].map(|until| Thing::new(&clock, until));
    let places = places::<4>();
    for thing in &things {
        assert!(keep(&places, thing.clone(), 0).is_ok());
    }
    work(&clock, &places);
    let tries = things.each_ref().map(|thing| thing.tried.borrow().len());
    assert_eq!(tries, [1, 5, 9]);
    assert!(things.iter().all(|thing| !thing.last.get()));
    assert!(is_empty(&places));
}

#[test]
fn what_does_not_fit_is_given_back() {
    let clock = Rc::new(Cell::new(0));
    let places = places::<4>();
    for _ in 0..4 {
        assert!(keep(&places, Thing::new(&clock, 5), 0).is_ok());
    }
    assert!(keep(&places, Thing::new(&clock, 5), 0).is_err());
    work(&clock, &places);
    assert!(keep(&places, Thing::new(&clock, 5), 0).is_ok());
}

/// Nothing is held for longer than a second, however many come.
#[test]
fn others_that_come_keep_none_for_longer() {
    let clock = Rc::new(Cell::new(0));
    let thing = Thing::new(&clock, usize::MAX);
    let places = places::<4>();
    assert!(keep(&places, thing.clone(), 0).is_ok());
    for now in 1..2 * HZ {
        clock.set(now);
        let _ = keep(&places, Thing::new(&clock, 0), now);
        try_all(&places, || now, HZ);
    }
    assert_eq!(thing.tried.borrow().last(), Some(&HZ));
}

#[test]
fn one_is_kept_once() {
    let clock = Rc::new(Cell::new(0));
    let thing = Thing::new(&clock, 0);
    let places = places::<4>();
    assert!(matches!(keep(&places, thing.clone(), 0), Ok(true)));
    assert!(matches!(keep(&places, thing.clone(), 0), Ok(false)));
    work(&clock, &places);
    assert_eq!(thing.tried.borrow().len(), 1);
}

/// A page is a file's end if the file could grow within it.
#[test]
fn the_end_of_a_file() {
    let page = |number: i64| number * 4096..(number + 1) * 4096;
    for (size, end) in [(1, 0), (4095, 0), (4097, 1), (8191, 1)] {
        let ends: Vec<_> = (0..3)
            .filter(|&number| is_end(page(number), size))
            .collect();
        assert_eq!(ends, [end], "{size} bytes");
    }
    for size in [0, 4096, 8192] {
        assert!(
            (0..3).all(|number| !is_end(page(number), size)),
            "{size} bytes"
        );
    }
}
