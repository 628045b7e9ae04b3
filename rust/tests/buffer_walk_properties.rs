// SPDX-License-Identifier: GPL-2.0

//! The walks over buffers against a model that visits every buffer of the folio.

#![cfg(not(loom))]

use core::cell::{Cell, RefCell};
use core::ops::Range;
use proptest::prelude::*;
use writeback::block_range::BlockRange;
use writeback::buffer_walk::{begin, commit, is_ready, Buffer, FileSystem, Ring};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct State {
    uptodate: bool,
    mapped: bool,
    new: bool,
    dirty: bool,
    delay: bool,
    unwritten: bool,
}

/// An operation on a buffer, or a call to the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Did {
    FoundNew,
    Map(usize),
    NewInUptodate(usize),
    Zero(usize),
    Read(usize),
    Wait(usize),
    Dirty(usize),
    Abort,
}

/// A folio and its file system, in which `map` makes a buffer as `mapping` says or fails.
#[derive(Clone, Debug)]
struct Folio {
    states: Vec<Cell<State>>,
    mapping: Vec<Option<State>>,
    reads_fail: bool,
    did: RefCell<Vec<Did>>,
}

#[derive(Clone, Copy)]
struct At<'a>(&'a Folio, usize);

impl Folio {
    fn did(&self, what: Did) {
        self.did.borrow_mut().push(what);
    }
    fn state(&self, block: usize) -> State {
        self.states[block].get()
    }
    fn change(&self, block: usize, change: impl FnOnce(&mut State)) {
        let mut state = self.state(block);
        change(&mut state);
        self.states[block].set(state);
    }
}

impl Buffer for At<'_> {
    fn is_ready(self) -> bool {
        let state = self.0.state(self.1);
        state.mapped && state.uptodate && !state.new
    }
    fn is_uptodate(self) -> bool {
        self.0.state(self.1).uptodate
    }
    fn set_uptodate(self) {
        self.0.change(self.1, |state| state.uptodate = true);
    }
    fn is_mapped(self) -> bool {
        self.0.state(self.1).mapped
    }
    fn is_new(self) -> bool {
        self.0.state(self.1).new
    }
    fn clear_new(self) {
        self.0.change(self.1, |state| state.new = false);
    }
    fn is_on_device(self) -> bool {
        let state = self.0.state(self.1);
        !state.delay && !state.unwritten
    }
    fn mark_dirty(self) {
        self.0.did(Did::Dirty(self.1));
        self.0.change(self.1, |state| state.dirty = true);
    }
    fn wait(self) {
        self.0.did(Did::Wait(self.1));
        self.0
            .change(self.1, |state| state.uptodate = !self.0.reads_fail);
    }
}

impl<'a> Ring for &'a Folio {
    type Buffer = At<'a>;
    fn buffers(&self, blocks: Range<usize>) -> impl Iterator<Item = At<'a>> {
        let folio: &'a Folio = self;
        blocks.map(move |block| At(folio, block))
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Failure {
    Map(usize),
    Read,
}

impl FileSystem<At<'_>> for Folio {
    type Error = Failure;
    fn found_new(&self) {
        self.did(Did::FoundNew);
    }
    fn map(&self, buffer: At<'_>, block: usize) -> Result<(), Failure> {
        assert_eq!(buffer.1, block);
        self.did(Did::Map(block));
        self.states[block].set(self.mapping[block].ok_or(Failure::Map(block))?);
        Ok(())
    }
    fn new_in_uptodate(&self, buffer: At<'_>) {
        self.did(Did::NewInUptodate(buffer.1));
        buffer.set_uptodate();
    }
    fn zero_outside(&self, block: usize) {
        self.did(Did::Zero(block));
    }
    fn read(&self, buffer: At<'_>) {
        self.did(Did::Read(buffer.1));
    }
    fn read_error(&self) -> Failure {
        Failure::Read
    }
    fn abort(&self) {
        self.did(Did::Abort);
    }
}

/// Visits every block, and computes whether the block is in the range and partial, as the C code
/// does.
fn every_block(range: &BlockRange) -> impl Iterator<Item = (usize, bool, bool)> + '_ {
    (0..range.blocks()).map(|block| {
        let bytes = range.bytes(block);
        let inside = bytes.end > range.from() && bytes.start < range.to();
        let partial = bytes.start < range.from() || bytes.end > range.to();
        (block, inside, partial)
    })
}

/// The walk before a write. Visits every block.
fn model_begin(folio: &Folio, range: &BlockRange, uptodate: bool) -> Result<(), Failure> {
    let (mut result, mut reads) = (Ok(()), Vec::new());
    for (block, inside, partial) in every_block(range) {
        let buffer = At(folio, block);
        if !inside {
            continue;
        }
        if buffer.is_new() {
            folio.found_new();
            buffer.clear_new();
        }
        if !buffer.is_mapped() {
            if let Err(error) = folio.map(buffer, block) {
                result = Err(error);
                break;
            }
            if buffer.is_new() {
                if uptodate {
                    folio.new_in_uptodate(buffer);
                } else if partial {
                    folio.zero_outside(block);
                }
                continue;
            }
        }
        if uptodate {
            buffer.set_uptodate();
        } else if partial && !buffer.is_uptodate() && buffer.is_on_device() {
            folio.read(buffer);
            reads.push(buffer);
        }
    }
    // The buffer that was read last is waited for first, as in __block_write_begin_int().
    for buffer in reads.into_iter().rev() {
        buffer.wait();
        if !buffer.is_uptodate() {
            result = Err(Failure::Read);
        }
    }
    if result.is_err() {
        folio.abort();
    }
    result
}

/// The walk after a write. Visits every block. In a folio that was up to date, buffers outside the
/// range are not changed.
fn model_commit(folio: &Folio, range: &BlockRange, uptodate: bool) -> bool {
    let mut complete = true;
    for (block, inside, _) in every_block(range) {
        let buffer = At(folio, block);
        if inside {
            buffer.set_uptodate();
            buffer.mark_dirty();
        } else if uptodate {
            continue;
        } else if !buffer.is_uptodate() {
            complete = false;
        }
        buffer.clear_new();
    }
    complete && !uptodate
}

fn state() -> impl Strategy<Value = State> {
    // Most buffers of a cached file are ready.
    let ready = State {
        uptodate: true,
        mapped: true,
        ..State::default()
    };
    prop_oneof![
        2 => Just(ready),
        1 => any::<[bool; 6]>().prop_map(|[uptodate, mapped, new, dirty, delay, unwritten]| State {
            uptodate, mapped, new, dirty, delay, unwritten,
        }),
    ]
}

fn folio() -> impl Strategy<Value = (Folio, u32)> {
    (0..6u32, 9..13u32).prop_flat_map(|(order, bits)| {
        let blocks = (4096usize << order) >> bits;
        let states = prop::collection::vec(state().prop_map(Cell::new), blocks);
        let mapping = prop::collection::vec(prop::option::weighted(0.9, state()), blocks);
        (states, mapping, any::<bool>()).prop_map(move |(states, mapping, reads_fail)| {
            let folio = Folio {
                states,
                mapping,
                reads_fail,
                did: RefCell::default(),
            };
            (folio, bits)
        })
    })
}

/// A range of bytes: often whole blocks, and often the whole folio.
fn range_of(folio: &Folio, block_bits: u32, bytes: (u8, usize, usize)) -> BlockRange {
    let size = folio.states.len() << block_bits;
    let (from, to) = match bytes {
        (0, ..) => (0, size),
        (1, a, b) => {
            let (a, b) = (a % (size + 1), b % (size + 1));
            (
                a.min(b) >> block_bits << block_bits,
                a.max(b) >> block_bits << block_bits,
            )
        }
        (_, a, b) => {
            let (a, b) = (a % (size + 1), b % (size + 1));
            (a.min(b), a.max(b))
        }
    };
    BlockRange::new(size, block_bits, from, to).expect("a range that exists")
}

fn bytes() -> impl Strategy<Value = (u8, usize, usize)> {
    (0..4u8, any::<usize>(), any::<usize>())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn begin_matches_the_model((folio, block_bits) in folio(), bytes in bytes(), uptodate: bool) {
        let (twin, range) = (folio.clone(), range_of(&folio, block_bits, bytes));
        let ready = is_ready(&&folio, &range);
        prop_assert!(folio.did.borrow().is_empty());
        let result = begin(&&folio, &range, uptodate, &folio);
        prop_assert_eq!(&result, &model_begin(&twin, &range, uptodate));
        prop_assert_eq!(&folio.states, &twin.states);
        prop_assert_eq!(&folio.did, &twin.did);
        // If the range is ready, `begin()` has nothing to do.
        prop_assert!(!ready || (result.is_ok() && folio.did.borrow().is_empty()));
    }

    #[test]
    fn commit_matches_the_model((folio, block_bits) in folio(), bytes in bytes(), uptodate: bool) {
        let (twin, range) = (folio.clone(), range_of(&folio, block_bits, bytes));
        let complete = commit(&&folio, &range, uptodate);
        prop_assert_eq!(complete, model_commit(&twin, &range, uptodate));
        prop_assert_eq!(&folio.states, &twin.states);
        prop_assert_eq!(&folio.did, &twin.did);
    }
}
