// SPDX-License-Identifier: GPL-2.0

//! Folios leave a ring in the order in which they came, each once, and no more wait than fit.
//! Neighbours are removed together.

#![cfg(not(loom))]

use proptest::prelude::*;
use std::cell::{Cell, RefCell};
use std::ops::Range;
use writeback::dropbehind::{
    is_end, is_old, stamp, to_front, Count, Neighbours, Ring, Seen, Slot, Todo, GAP, MOST, NEW,
};

const SLOTS: usize = 8;
/// Folios from this number on were not tried yet.
const NEW_ONES: u32 = 100;

#[derive(Default)]
struct Place(RefCell<Option<u32>>);

impl Slot for Place {
    type Item = u32;

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

    fn has(&self, item: &u32) -> bool {
        *self.0.borrow() == Some(*item)
    }

    fn is_retry(&self) -> bool {
        self.0.borrow().is_some_and(|item| item < NEW_ONES)
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
        let slots: [Place; SLOTS] = Default::default();
        let (nr_put, nr_taken) = (Number(Cell::new(begin)), Number(Cell::new(begin)));
        let ring = Ring::new(&slots, &nr_put, &nr_taken);
        let mut there = std::collections::VecDeque::new();
        for (number, step) in (0..).zip(steps) {
            let filled = there.len();
            prop_assert!(ring.has_room(SLOTS - filled));
            prop_assert!(!ring.has_room(SLOTS - filled + 1));
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
                Step::Take => prop_assert_eq!(ring.take(), there.pop_front()),
            }
        }
    }
}

#[test]
fn a_ring_without_slots_gives_back() {
    let (nr_put, nr_taken) = (Number(Cell::new(0)), Number(Cell::new(0)));
    let ring = Ring::<Place, Number>::new(&[], &nr_put, &nr_taken);
    assert_eq!(ring.put(1), Err(1));
    assert_eq!(ring.take(), None);
    assert!(!ring.has_room(1));
}

/// A folio that waits already is not put back: a log's last page comes after each write.
#[test]
fn a_folio_is_put_back_once() {
    let slots: [Place; SLOTS] = Default::default();
    let (nr_put, nr_taken) = (Number(Cell::new(0)), Number(Cell::new(0)));
    let ring = Ring::new(&slots, &nr_put, &nr_taken);
    assert_eq!(ring.put_back(7), Ok(true));
    assert_eq!(ring.put_back(7), Err(7));
    assert_eq!(ring.put_back(1), Ok(false));
    assert_eq!(ring.put_back(1), Err(1));
    assert_eq!(ring.take(), Some(7));
    assert_eq!(ring.put_back(7), Ok(false));
    assert_eq!(
        (ring.take(), ring.take(), ring.take()),
        (Some(1), Some(7), None)
    );
}

/// Folios that are tried again leave room for new ones.
#[test]
fn folios_are_put_back_into_half_of_the_ring() {
    let slots: [Place; SLOTS] = Default::default();
    let (nr_put, nr_taken) = (Number(Cell::new(0)), Number(Cell::new(0)));
    let ring = Ring::new(&slots, &nr_put, &nr_taken);
    let half = SLOTS as u32 / 2;
    assert!(ring.put(NEW_ONES).is_ok());
    for number in 0..half {
        assert!(ring.put_back(number).is_ok());
    }
    assert_eq!(ring.put_back(half), Err(half));
    for number in half + 1..2 * half {
        assert!(ring.put(NEW_ONES + number).is_ok());
    }
}

#[test]
fn a_folio_is_old_after_about_a_second() {
    const HZ: usize = 1000;
    for begin in [0, 1, 249, 250, 1749, 1750, 123_456] {
        let since = stamp(begin, HZ);
        assert!((1..8).contains(&since));
        let old = (0..1600)
            .position(|ticks| is_old(since, stamp(begin + ticks, HZ)))
            .unwrap();
        assert!((751..=1000).contains(&old), "{begin}: {old}");
        assert!((old..1500).all(|ticks| is_old(since, stamp(begin + ticks, HZ))));
        assert!(!is_old(NEW, since));
    }
}

const PAGE: i64 = 4096;

fn page(index: i64) -> Range<i64> {
    index * PAGE..(index + 1) * PAGE
}

#[test]
fn what_begins_where_the_last_ended_goes_with_it() {
    let mut neighbours = Neighbours::default();
    assert!(neighbours.add(0, 7, page(5)));
    assert!(neighbours.add(1, 7, page(6)));
    assert!(neighbours.add(2, 7, 7 * PAGE..7 * PAGE + (2 << 20)));
    assert!(neighbours.add(3, 7, page(7 + 512)));
}

#[test]
fn another_page_cache_is_no_neighbour() {
    let mut neighbours = Neighbours::default();
    assert!(neighbours.add(0, 7, page(5)));
    assert!(!neighbours.add(1, 8, page(6)));
    assert!(neighbours.add(1, 8, page(7)));
}

#[test]
fn a_gap_is_short() {
    let end = 6 * PAGE;
    for (start, goes) in [(end + GAP, true), (end + GAP + PAGE, false)] {
        let mut neighbours = Neighbours::default();
        assert!(neighbours.add(0, 7, page(5)));
        assert_eq!(neighbours.add(1, 7, start..start + PAGE), goes);
    }
}

#[test]
fn what_lies_before_is_no_neighbour() {
    for index in [0, 4, 5] {
        let mut neighbours = Neighbours::default();
        assert!(neighbours.add(0, 7, page(5)));
        assert!(!neighbours.add(1, 7, page(index)));
    }
}

#[test]
fn no_more_are_gathered_than_fit() {
    let mut neighbours = Neighbours::default();
    for nr in 0..MOST {
        assert!(neighbours.add(nr, 7, page(nr as i64)));
    }
    assert!(!neighbours.add(MOST, 7, page(MOST as i64)));
}

#[test]
fn positions_of_any_kind_do_no_harm() {
    for (first, second) in [(i64::MAX, i64::MIN), (i64::MIN, i64::MAX), (-1, 0)] {
        let mut neighbours = Neighbours::default();
        assert!(neighbours.add(0, 7, first..first));
        neighbours.add(1, 7, second..second);
    }
}

#[test]
fn what_is_clean_and_dropbehind_may_go() {
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
    /// Whatever comes, what is removed together is in one page cache and ascends.
    #[test]
    fn neighbours_ascend(folios in prop::collection::vec((1..3usize, 0..40i64, 1..5i64), 0..200)) {
        let mut neighbours = Neighbours::default();
        let mut gathered: Vec<(usize, Range<i64>)> = Vec::new();
        let mut nr_dropped = 0;
        for &(mapping, index, pages) in &folios {
            let bytes = index * PAGE..(index + pages) * PAGE;
            if !neighbours.add(gathered.len(), mapping, bytes.clone()) {
                prop_assert!(!gathered.is_empty());
                nr_dropped += gathered.len();
                gathered.clear();
            }
            gathered.push((mapping, bytes));
            prop_assert!(gathered.len() <= MOST);
            for two in gathered.windows(2) {
                prop_assert_eq!(two[0].0, two[1].0);
                prop_assert!(two[0].1.end <= two[1].1.start);
                prop_assert!(two[1].1.start - two[0].1.end <= GAP);
            }
        }
        prop_assert_eq!(nr_dropped + gathered.len(), folios.len());
    }

    #[test]
    fn who_goes_is_in_front_in_order(items in prop::collection::vec((any::<u8>(), any::<bool>()), 0..=MOST)) {
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

/// A page is a file's end if the file could grow within it.
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
