// SPDX-License-Identifier: GPL-2.0

//! The policies: their names, and what each does after any write at all.

#![cfg(not(loom))]

use core::cell::Cell;
use proptest::prelude::*;
use writeback::policy::{find, Action, PageCache, Policy, Written, POLICIES};

/// A page cache that counts how often it is asked.
struct Asked {
    busy: bool,
    times: Cell<u32>,
}

impl PageCache for Asked {
    fn is_under_writeback(&self) -> bool {
        self.times.set(self.times.get() + 1);
        self.busy
    }
}

fn policy(name: &str) -> &'static Policy {
    &POLICIES[find(name.as_bytes()).expect("a policy of this name")]
}

/// What the policy of this name does after the write, and how often it asks.
fn after(name: &str, written: Written, busy: bool) -> (Action, u32) {
    let cache = Asked {
        busy,
        times: Cell::new(0),
    };
    let action = (policy(name).after)(written, &cache);
    (action, cache.times.get())
}

#[test]
fn the_names() {
    let names: Vec<_> = POLICIES
        .iter()
        .map(|policy| policy.name.to_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["adaptive", "kick", "inline", "rate-limited", "none"]
    );
    for (place, name) in names.iter().enumerate() {
        assert_eq!(find(name.as_bytes()), Some(place));
    }
}

#[test]
fn what_is_no_name() {
    for name in [
        "",
        " kick",
        "kick ",
        "kick\n",
        "kic",
        "kicks",
        "KICK",
        "rate_limited",
        "kick\0",
    ] {
        assert_eq!(find(name.as_bytes()), None, "{name:?}");
    }
}

#[test]
fn what_is_no_write() {
    let before = Written::before;
    for (end, count) in [
        (0, 0),
        (1, 0),
        (4096, 0),
        (4096, -1),
        (4095, 4096),
        (0, 1),
        (-1, 1),
        (i64::MIN, 1),
        (i64::MIN, isize::MAX),
        (i64::MAX, isize::MIN),
        (i64::MAX, 0),
    ] {
        assert_eq!(before(end, count), None, "{count} bytes before {end}");
    }
}

#[test]
fn the_largest_writes() {
    for (count, first) in [(isize::MAX, 0), (1, i64::MAX - 1)] {
        let written = Written::before(i64::MAX, count).unwrap();
        assert_eq!((written.first(), written.last()), (first, i64::MAX - 1));
    }
    assert_eq!(
        Written::before(i64::MAX, isize::MAX).unwrap().pages(0),
        i64::MAX
    );
}

#[test]
fn pages_of_a_write() {
    let pages = |end, count| Written::before(end, count).unwrap().pages(12);
    assert_eq!(pages(4096, 4096), 1);
    assert_eq!(pages(4097, 1), 1);
    assert_eq!(pages(8192, 4097), 2);
    assert_eq!(pages(8192, 8192), 2);
    // In two pages, but no more than one.
    assert_eq!(pages(4097, 2), 1);
}

/// Numbers that make writes, and numbers that make trouble.
fn number() -> impl Strategy<Value = i64> {
    prop_oneof![
        any::<i64>(),
        0..1i64 << 30,
        (0..i64::BITS).prop_map(|bit| 1i64.wrapping_shl(bit)),
        (0..i64::BITS).prop_map(|bit| 1i64.wrapping_shl(bit).wrapping_sub(1)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn a_write_is_the_bytes_before_its_end(end in number(), count in number(), shift in 0..80u32) {
        let written = Written::before(end, count as isize);
        // With numbers that cannot overflow.
        let (wide_end, wide_count) = (i128::from(end), i128::from(count));
        prop_assert_eq!(written.is_some(), wide_count > 0 && wide_end >= wide_count);
        if let Some(written) = written {
            prop_assert_eq!(i128::from(written.first()), wide_end - wide_count);
            prop_assert_eq!(i128::from(written.last()), wide_end - 1);
            let page = 1i128 << shift;
            prop_assert_eq!(i128::from(written.pages(shift)), (wide_count + page - 1) / page);
        }
    }

    #[test]
    fn what_each_does(count in 1..1isize << 40, first in 0..1i64 << 50, busy: bool) {
        let written = Written::before(first + count as i64, count).unwrap();
        prop_assert_eq!(after("adaptive", written, busy), (Action::Ask, 0));
        prop_assert_eq!(after("kick", written, busy), (Action::Kick, 0));
        prop_assert_eq!(after("inline", written, busy), (Action::Flush(written), 0));
        prop_assert_eq!(after("none", written, busy), (Action::Nothing, 0));
        let limited = if busy { Action::Nothing } else { Action::FlushAsMany(written) };
        prop_assert_eq!(after("rate-limited", written, busy), (limited, 1));
    }

    #[test]
    fn only_names_are_found(name in prop::collection::vec(any::<u8>(), 0..20)) {
        let found = find(&name).map(|place| POLICIES[place].name.to_bytes());
        let is_name = POLICIES.iter().any(|policy| policy.name.to_bytes() == name);
        prop_assert_eq!(found, is_name.then_some(&name[..]));
    }
}
