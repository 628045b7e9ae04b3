// SPDX-License-Identifier: GPL-2.0

//! Block ranges against a model that visits every block and every byte.

#![cfg(not(loom))]

use proptest::prelude::*;
use writeback::block_range::{BlockRange, Position, RangeError, MIN_BLOCK_SIZE};

/// What a walk over all blocks of the folio finds out about each, from the definition alone.
fn model(folio_size: usize, block_size: usize, from: usize, to: usize) -> Vec<Position> {
    (0..folio_size)
        .step_by(block_size)
        .map(|start| {
            let end = start + block_size;
            if end <= from {
                Position::Before
            } else if start >= to {
                Position::After
            } else {
                Position::In {
                    before: start < from,
                    after: end > to,
                }
            }
        })
        .collect()
}

fn check(folio_size: usize, block_size: usize, from: usize, to: usize) {
    let range = BlockRange::new(folio_size, block_size, from, to).expect("a range that exists");
    let expected = model(folio_size, block_size, from, to);
    assert_eq!((range.from(), range.to()), (from, to));
    assert_eq!(range.blocks(), expected.len());
    assert_eq!(1 << range.block_bits(), block_size);
    let is_in = |position: &Position| matches!(position, Position::In { .. });
    for (block, position) in expected.iter().enumerate() {
        assert_eq!(
            range.position(block),
            *position,
            "block {block} of {range:?}"
        );
        assert_eq!(range.touched().contains(&block), is_in(position));
        assert_eq!(
            range.bytes(block),
            block * block_size..(block + 1) * block_size
        );
        if let Position::In { before, after } = *position {
            assert_eq!(range.is_partial(block), before || after);
        }
    }
    // A walk that begins and stops where it may has seen all that it must.
    let touched = range.touched();
    assert!(expected[..touched.start]
        .iter()
        .all(|&position| position == Position::Before));
    assert!(expected[touched.end..]
        .iter()
        .all(|&position| position == Position::After));
}

#[test]
fn every_range_of_small_folios() {
    // Sizes in sectors, so that every boundary and both of its neighbours are met.
    for folio_size in [512, 1024, 2048, 4096] {
        for block_bits in 9.. {
            let block_size = 1 << block_bits;
            if block_size > folio_size {
                break;
            }
            let near: Vec<usize> = (0..=folio_size)
                .filter(|byte| (byte + 2) % 512 <= 4)
                .collect();
            for &from in &near {
                for &to in near.iter().filter(|&&to| to >= from) {
                    check(folio_size, block_size, from, to);
                }
            }
        }
    }
}

#[test]
fn what_is_no_range() {
    let new = BlockRange::new;
    for block_size in [0, 1, 256, 511, 513, 1000, 3072, usize::MAX, 1 << 63] {
        assert_eq!(new(4096, block_size, 0, 0), Err(RangeError::BlockSize));
    }
    for folio_size in [0, 511, 4095, 4097, 6144 + 1, usize::MAX] {
        assert_eq!(new(folio_size, 4096, 0, 0), Err(RangeError::BlockSize));
    }
    assert_eq!(new(4096, 8192, 0, 0), Err(RangeError::BlockSize));
    assert_eq!(new(4096, 512, 1, 0), Err(RangeError::Reversed));
    assert_eq!(new(4096, 512, usize::MAX, 0), Err(RangeError::Reversed));
    assert_eq!(new(4096, 512, 0, 4097), Err(RangeError::BeyondFolio));
    assert_eq!(new(4096, 512, 4097, 4097), Err(RangeError::BeyondFolio));
    assert_eq!(new(4096, 512, 0, usize::MAX), Err(RangeError::BeyondFolio));
}

/// Numbers that make ranges, and numbers that make trouble.
fn number() -> impl Strategy<Value = usize> {
    prop_oneof![
        any::<usize>(),
        0..1usize << 22,
        (0..usize::BITS).prop_map(|bit| 1 << bit),
        (0..usize::BITS).prop_map(|bit| (1usize << bit).wrapping_sub(1)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn as_the_model_has_it(order in 0..10u32, block_bits in 9..17u32, a: usize, b: usize, snap: bool) {
        let folio_size = 4096usize << order;
        let block_size = (1usize << block_bits).min(folio_size);
        let (a, b) = (a % (folio_size + 1), b % (folio_size + 1));
        let (mut from, mut to) = (a.min(b), a.max(b));
        if snap {
            from &= !(block_size - 1);
            to &= !(block_size - 1);
        }
        check(folio_size, block_size, from, to);
        check(folio_size, block_size, from, from);
        check(folio_size, block_size, from, folio_size);
    }

    #[test]
    fn no_number_panics(folio_size in number(), block_size in number(), from in number(),
                        to in number(), block in number()) {
        let range = BlockRange::new(folio_size, block_size, from, to);
        let exists = block_size.is_power_of_two()
            && block_size >= MIN_BLOCK_SIZE
            && folio_size >= block_size
            && folio_size % block_size == 0
            && from <= to
            && to <= folio_size;
        prop_assert_eq!(range.is_ok(), exists);
        if let Ok(range) = range {
            let _ = (range.position(block), range.bytes(block), range.is_partial(block));
            prop_assert!(range.touched().end <= range.blocks());
        }
    }
}
