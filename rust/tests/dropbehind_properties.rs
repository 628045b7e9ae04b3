// SPDX-License-Identifier: GPL-2.0

//! Folios leave a ring once each, in the order in which they were put in. No more folios wait than
//! fit.

#![cfg(not(loom))]

use proptest::prelude::*;
use std::cell::{Cell, RefCell};
use writeback::dropbehind::{
    few, is_end, is_old, stamp, to_front, Count, Ring, Seen, Slot, Todo, MOST, NEW,
};

const SLOTS: usize = 8;

#[derive(Default)]
struct Place(RefCell<Option<u32>>);

impl Slot for Place {
    type Item = u32;

    fn exchange(&self, item: Option<u32>) -> Option<u32> {
        std::mem::replace(&mut self.0.borrow_mut(), item)
    }

    fn has(&self, item: &u32) -> bool {
        *self.0.borrow() == Some(*item)
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
    Replace,
    Take,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![3 => Just(Step::Put), 1 => Just(Step::Replace), 3 => Just(Step::Take)];
    prop::collection::vec(step, 0..200)
}

proptest! {
    #[test]
    fn first_in_first_out(steps in steps(), begin in prop_oneof![Just(0), usize::MAX - 20..=usize::MAX]) {
        let slots: [Place; SLOTS] = Default::default();
        let (nr_put, nr_taken) = (Number(Cell::new(begin)), Number(Cell::new(begin)));
        let ring = Ring::new(&slots, &nr_put, &nr_taken);
        let mut there = std::collections::VecDeque::new();
        for (number, step) in (0..).zip(steps) {
            let filled = there.len();
            prop_assert!(ring.has_room(SLOTS - filled));
            prop_assert!(!ring.has_room(SLOTS - filled + 1));
            prop_assert_eq!(ring.may_wait(), filled <= 5);
            match step {
                Step::Put if filled == SLOTS => prop_assert_eq!(ring.put(number), Err(number)),
                Step::Put => {
                    there.push_back(number);
                    let todo = match filled {
                        0 => Todo::Soon,
                        3 | 5 => Todo::Now,
                        _ => Todo::Nothing,
                    };
                    prop_assert_eq!(ring.put(number), Ok(todo));
                }
                Step::Replace if filled == SLOTS => {
                    prop_assert_eq!(ring.replace(number), Err(there[0]));
                    there[0] = number;
                }
                Step::Replace => {
                    there.push_back(number);
                    prop_assert!(ring.replace(number).is_ok());
                }
                Step::Take => prop_assert_eq!(ring.take(), there.pop_front()),
            }
        }
    }
}

#[test]
fn a_ring_without_slots_accepts_no_folio() {
    let (nr_put, nr_taken) = (Number(Cell::new(0)), Number(Cell::new(0)));
    let ring = Ring::<Place, Number>::new(&[], &nr_put, &nr_taken);
    assert_eq!(ring.put(1), Err(1));
    assert_eq!(ring.replace(1), Err(1));
    assert_eq!(ring.take(), None);
    assert!(!ring.has_room(1));
}

/// A bio that was told that there is room finds it, even if other bios end in interrupts meanwhile.
#[test]
fn an_interrupted_bio_has_its_room() {
    an_interrupted_bio_has_its_room_in::<32>();
    an_interrupted_bio_has_its_room_in::<256>();
}

fn an_interrupted_bio_has_its_room_in<const N: usize>() {
    let nr = few(N) as usize;
    for filled in 0..=N {
        let slots: [Place; N] = std::array::from_fn(|_| Place::default());
        let (nr_put, nr_taken) = (Number(Cell::new(0)), Number(Cell::new(0)));
        let ring = Ring::new(&slots, &nr_put, &nr_taken);
        let put = |nr| (0..nr).for_each(|_| assert!(ring.put(7).is_ok(), "{filled}"));
        put(filled);
        let task = ring.has_room_for_bio(nr);
        let softirq = ring.has_room_for_bio(nr);
        while ring.has_room_for_bio(1) {
            put(1);
        }
        put(if softirq { nr } else { 0 });
        put(if task { nr } else { 0 });
        assert_eq!(task, filled <= N - 3 * nr);
    }
}

/// A folio that waits already is not put back. The last page of a log is ended after each write.
#[test]
fn a_folio_is_put_back_once() {
    let slots: [Place; SLOTS] = Default::default();
    let (nr_put, nr_taken) = (Number(Cell::new(0)), Number(Cell::new(0)));
    let ring = Ring::new(&slots, &nr_put, &nr_taken);
    assert_eq!(ring.put_back(7), Ok(Todo::Soon));
    assert_eq!(ring.put_back(7), Err(7));
    assert_eq!(ring.put_back(1), Ok(Todo::Nothing));
    assert_eq!(ring.put_back(1), Err(1));
    assert_eq!(ring.take(), Some(7));
    assert_eq!(ring.put_back(7), Ok(Todo::Nothing));
    assert_eq!(
        (ring.take(), ring.take(), ring.take()),
        (Some(1), Some(7), None)
    );
}

#[test]
fn a_folio_is_old_after_500_to_667_ms() {
    const HZ: usize = 1000;
    for begin in [0, 1, 165, 166, 1161, 1162, 123_456] {
        let since = stamp(begin, HZ);
        assert!((1..8).contains(&since));
        let old = (0..1100)
            .position(|ticks| is_old(since, stamp(begin + ticks, HZ)))
            .unwrap();
        assert!((499..=664).contains(&old), "{begin}: {old}");
        assert!((old..996).all(|ticks| is_old(since, stamp(begin + ticks, HZ))));
        assert!(!is_old(NEW, since));
    }
}

#[test]
fn only_a_clean_dropbehind_folio_may_go() {
    for bits in 0..8 {
        let seen = Seen {
            dropbehind: bits & 1 != 0,
            dirty: bits & 2 != 0,
            writeback: bits & 4 != 0,
        };
        assert_eq!(seen.may_go(), bits == 1);
    }
}

proptest! {
    #[test]
    fn front_keeps_order(items in prop::collection::vec((any::<u8>(), any::<bool>()), 0..=MOST)) {
        let mut sorted = items.clone();
        let mut asked = Vec::new();
        let nr = to_front(&mut sorted, |&mut item| {
            asked.push(item);
            item.1
        });
        prop_assert_eq!(&asked, &items);
        let of = |goes| items.iter().copied().filter(move |item| item.1 == goes);
        let wanted: Vec<_> = of(true).chain(of(false)).collect();
        prop_assert_eq!(&sorted[..nr], &wanted[..nr]);
        let mut others = (sorted[nr..].to_vec(), wanted[nr..].to_vec());
        others.0.sort_unstable();
        others.1.sort_unstable();
        prop_assert_eq!(others.0, others.1);
    }
}

/// A page is the end of a file if the file could grow within that page.
#[test]
fn the_end_of_a_file() {
    let page = |number: i64| number * 4096..(number + 1) * 4096;
    for (size, end) in [(1, 0), (4095, 0), (4097, 1), (8191, 1)] {
        let ends: Vec<_> = (0..3)
            .filter(|&number| is_end(&page(number), size))
            .collect();
        assert_eq!(ends, [end], "{size} bytes");
    }
    for size in [0, 4096, 8192] {
        assert!(
            (0..3).all(|number| !is_end(&page(number), size)),
            "{size} bytes"
        );
    }
}
