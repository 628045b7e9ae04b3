// SPDX-License-Identifier: GPL-2.0

//! Block ranges against a model that visits every block and every byte.

#![cfg(not(loom))]

use proptest::prelude::*;
use writeback::block_range::BlockRange;

/// Where a block lies, as seen from the range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    Before,
    In { partial: bool },
    After,
}

/// The position of each block of the folio, computed from the definition alone.
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
                    partial: start < from || end > to,
                }
            }
        })
        .collect()
}

fn check(folio_size: usize, block_bits: u32, from: usize, to: usize) {
    let range = BlockRange::new(folio_size, block_bits, from, to).expect("a range that exists");
    let block_size = 1 << block_bits;
    let expected = model(folio_size, block_size, from, to);
    assert_eq!((range.from(), range.to()), (from, to));
    assert_eq!(range.blocks(), expected.len());
    assert_eq!(range.is_whole(), to - from == folio_size);
    let touched = range.touched();
    for (block, position) in expected.iter().enumerate() {
        let found = if block < touched.start {
            Position::Before
        } else if block >= touched.end {
            Position::After
        } else {
            let partial = range.is_partial(block);
            Position::In { partial }
        };
        assert_eq!(found, *position, "block {block} of {range:?}");
        assert_eq!(
            range.bytes(block),
            block * block_size..(block + 1) * block_size
        );
    }
}

#[test]
fn every_range_of_small_folios() {
    // The ends of the ranges are near sector boundaries, so that each boundary and its neighbours
    // are tested.
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
                    check(folio_size, block_bits, from, to);
                }
            }
        }
    }
}

#[test]
fn ranges_that_a_folio_cannot_have() {
    let new = BlockRange::new;
    assert_eq!(new(4096, 9, 1, 0), None);
    assert_eq!(new(4096, 9, usize::MAX, 0), None);
    assert_eq!(new(4096, 9, 0, 4097), None);
    assert_eq!(new(4096, 9, 4097, 4097), None);
    assert_eq!(new(4096, 9, 0, usize::MAX), None);
}

/// Numbers that give valid ranges, and numbers that overflow.
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
    fn equals_the_model(order in 0..10u32, block_bits in 9..17u32, a: usize, b: usize, snap: bool) {
        let folio_size = 4096usize << order;
        let block_bits = block_bits.min(folio_size.ilog2());
        let block_size = 1usize << block_bits;
        let (a, b) = (a % (folio_size + 1), b % (folio_size + 1));
        let (mut from, mut to) = (a.min(b), a.max(b));
        if snap {
            from &= !(block_size - 1);
            to &= !(block_size - 1);
        }
        check(folio_size, block_bits, from, to);
        check(folio_size, block_bits, from, from);
        check(folio_size, block_bits, from, folio_size);
    }

    #[test]
    fn no_number_panics(folio_size in number(), block_bits: u32, from in number(), to in number(),
                        block in number()) {
        let range = BlockRange::new(folio_size, block_bits, from, to);
        prop_assert_eq!(range.is_some(), from <= to && to <= folio_size);
        if let Some(range) = range {
            let _ = (range.bytes(block), range.is_partial(block), range.is_whole());
            let _ = (range.touched(), range.blocks());
        }
    }
}
