// SPDX-License-Identifier: GPL-2.0

//! Finding a link of a ring against counting to it.

#![cfg(not(loom))]

use core::cell::Cell;
use writeback::ring::{index, seek, Link, FEW};

/// A ring of links that count how often they are followed.
struct Ring {
    skips: Vec<Cell<Option<usize>>>,
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
            skips: vec![Cell::new(None); len],
            steps: Cell::new(0),
        }
    }

    fn at(&self, place: usize) -> At<'_> {
        At { ring: self, place }
    }

    fn followed(&self, place: usize) -> At<'_> {
        self.steps.set(self.steps.get() + 1);
        self.at(place)
    }
}

impl Link for At<'_> {
    fn next(self) -> Self {
        self.ring.followed((self.place + 1) % self.ring.skips.len())
    }

    fn skip(self) -> Option<Self> {
        let far = self.ring.skips[self.place].get()?;
        Some(self.ring.followed(far))
    }

    fn set_skip(self, far: Self) {
        self.ring.skips[self.place].set(Some(far.place));
    }
}

fn lengths() -> impl Iterator<Item = usize> {
    // Every length at which the shape of the tree could go wrong, and those of folios up to 2 MiB.
    (1..200).chain([255, 256, 257, 511, 512, 1000, 1024, 2048, 4095, 4096])
}

#[test]
fn every_link_is_found() {
    for len in lengths() {
        let ring = Ring::new(len);
        index(ring.at(0), len);
        for nth in 0..len {
            assert_eq!(seek(ring.at(0), len, nth).place, nth, "of {len}");
        }
    }
}

#[test]
fn as_far_as_the_logarithm() {
    for len in lengths() {
        let ring = Ring::new(len);
        index(ring.at(0), len);
        let most = (0..len)
            .map(|nth| {
                ring.steps.set(0);
                seek(ring.at(0), len, nth);
                ring.steps.get()
            })
            .max();
        let halvings = len.ilog2() as usize;
        assert!(
            most <= Some(FEW.max(halvings + 8)),
            "{most:?} steps of {len}"
        );
    }
}

#[test]
fn without_an_index_it_walks() {
    let ring = Ring::new(300);
    assert_eq!(seek(ring.at(0), 300, 299).place, 299);
    assert_eq!(ring.steps.get(), 299);
}

#[test]
fn a_few_links_are_left_alone() {
    let ring = Ring::new(FEW);
    index(ring.at(0), FEW);
    assert_eq!(ring.steps.get(), 0);
    assert!(ring.skips.iter().all(|skip| skip.get().is_none()));
}

#[test]
fn indexing_visits_each_link_once() {
    for len in [FEW + 1, 512, 2048] {
        let ring = Ring::new(len);
        index(ring.at(0), len);
        assert_eq!(ring.steps.get(), len);
    }
}

#[test]
fn links_that_the_ring_does_not_have() {
    // Nonsense gives some link of the ring, in time.
    let ring = Ring::new(100);
    index(ring.at(0), 100);
    for nth in [100, 101, 199, 1000] {
        assert!(seek(ring.at(0), 100, nth).place < 100);
    }
}
