// SPDX-License-Identifier: GPL-2.0

//! Folios are gathered as one row, no more than fit, and each is asked for once.

#![cfg(not(loom))]

use proptest::prelude::*;
use std::ops::Range;
use writeback::together::{is_worth_it, to_front, Row, Seen, GAP, MOST};

const PAGE: i64 = 4096;

fn page(index: i64) -> Range<i64> {
    index * PAGE..(index + 1) * PAGE
}

#[test]
fn what_begins_where_the_last_ended_goes_with_it() {
    let mut row = Row::default();
    assert!(row.add(0, 7, page(5)));
    assert!(row.add(1, 7, page(6)));
    assert!(row.add(2, 7, 7 * PAGE..7 * PAGE + (2 << 20)));
    assert!(row.add(3, 7, page(7 + 512)));
}

#[test]
fn another_page_cache_begins_another_row() {
    let mut row = Row::default();
    assert!(row.add(0, 7, page(5)));
    assert!(!row.add(1, 8, page(6)));
    assert!(row.add(1, 8, page(7)));
}

#[test]
fn a_gap_is_short() {
    let end = 6 * PAGE;
    for (start, goes) in [(end + GAP, true), (end + GAP + PAGE, false)] {
        let mut row = Row::default();
        assert!(row.add(0, 7, page(5)));
        assert_eq!(row.add(1, 7, start..start + PAGE), goes);
    }
}

#[test]
fn what_lies_before_begins_another_row() {
    for index in [0, 4, 5] {
        let mut row = Row::default();
        assert!(row.add(0, 7, page(5)));
        assert!(!row.add(1, 7, page(index)));
    }
}

#[test]
fn no_more_are_gathered_than_fit() {
    let mut row = Row::default();
    for nr in 0..MOST {
        assert!(row.add(nr, 7, page(nr as i64)));
    }
    assert!(!row.add(MOST, 7, page(MOST as i64)));
}

#[test]
fn positions_of_any_kind_do_no_harm() {
    for (first, second) in [(i64::MAX, i64::MIN), (i64::MIN, i64::MAX), (-1, 0)] {
        let mut row = Row::default();
        assert!(row.add(0, 7, first..first));
        row.add(1, 7, second..second);
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
    /// Whatever comes, what is gathered at a time is one row of one page cache.
    #[test]
    fn rows_ascend(folios in prop::collection::vec((1..3usize, 0..40i64, 1..5i64), 0..200)) {
        let mut row = Row::default();
        let mut gathered: Vec<(usize, Range<i64>)> = Vec::new();
        let mut nr_dropped = 0;
        for &(cache, index, pages) in &folios {
            let bytes = index * PAGE..(index + pages) * PAGE;
            if !row.add(gathered.len(), cache, bytes.clone()) {
                prop_assert!(!gathered.is_empty());
                nr_dropped += gathered.len();
                gathered.clear();
            }
            gathered.push((cache, bytes));
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

#[test]
fn one_folio_or_large_ones_are_not_worth_it() {
    for (size, nr_pieces, bytes, worth) in [
        (4096, 1, 4096, false),
        (4096, 1, 1024, false),
        (4096, 1, 8192, true),
        (4096, 2, 4096, true),
        (65536, 1, 65536, false),
        (65536, 16, 65536, true),
        (2 << 20, 1, 2 << 20, false),
        (2 << 20, 4, 2 << 20, false),
    ] {
        assert_eq!(
            is_worth_it(size, nr_pieces, bytes),
            worth,
            "{size} {nr_pieces} {bytes}"
        );
    }
}
