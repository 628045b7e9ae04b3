// SPDX-License-Identifier: GPL-2.0

//! Finding a link of a ring against counting to it.

#![cfg(not(loom))]

use core::cell::Cell;
use writeback::buffer_index::{index, index_len, seek, Link, EVERY, FEW};

/// A ring that counts how often its links are followed.
struct Ring {
    len: usize,
    steps: Cell<usize>,
}

#[derive(Clone, Copy)]
struct At<'a> {
    ring: &'a Ring,
    place: usize,
}

impl Ring {
    fn new(len: usize) -> Self {
        Self {
            len,
            steps: Cell::new(0),
        }
    }

    fn head(&self) -> At<'_> {
        At {
            ring: self,
            place: 0,
        }
    }

    fn index(&self) -> Vec<At<'_>> {
        index(self.head(), self.len).collect()
    }
}

impl Link for At<'_> {
    fn next(self) -> Self {
        self.ring.steps.set(self.ring.steps.get() + 1);
        Self {
            place: (self.place + 1) % self.ring.len,
            ..self
        }
    }
}

fn lengths() -> impl Iterator<Item = usize> {
    // Every length around the distances, and those of folios up to 2 MiB.
    (1..200).chain([255, 256, 257, 511, 512, 1000, 1024, 2048, 4095, 4096])
}

#[test]
fn every_link_is_found_in_a_few_steps() {
    for len in lengths() {
        let ring = Ring::new(len);
        let index = ring.index();
        assert_eq!(index.len(), index_len(len));
        for nth in 0..len {
            ring.steps.set(0);
            assert_eq!(seek(ring.head(), &index, nth).place, nth, "of {len}");
            let most = if len > FEW { EVERY - 1 } else { nth };
            assert!(ring.steps.get() <= most, "{nth} of {len}");
        }
    }
}

#[test]
fn without_an_index_it_walks() {
    let ring = Ring::new(300);
    assert_eq!(seek(ring.head(), &[], 299).place, 299);
    assert_eq!(ring.steps.get(), 299);
}

#[test]
fn a_few_links_have_no_index() {
    let ring = Ring::new(FEW);
    assert!(ring.index().is_empty());
    assert_eq!(ring.steps.get(), 0);
}

#[test]
fn indexing_makes_one_turn_at_most() {
    for len in lengths() {
        let ring = Ring::new(len);
        assert!(ring.index().iter().all(|at| at.place % EVERY == 0));
        assert!(ring.steps.get() < len, "of {len}");
    }
}

#[test]
fn links_that_the_ring_does_not_have() {
    // Nonsense gives some link of the ring.
    let ring = Ring::new(100);
    let index = ring.index();
    for nth in [100, 101, 199, 1000] {
        assert_eq!(seek(ring.head(), &index, nth).place, nth % 100);
    }
}
