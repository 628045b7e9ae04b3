// SPDX-License-Identifier: GPL-2.0

//! The loads of the benchmark: what each of their writers does, one step after the other. `trickle` and
//! `16 paced` are none of them.

use super::drive::PAGE;
use super::wb::MS;
use std::collections::VecDeque;

/// What a system call costs, and to find the folio of each page or write a new one, and to copy bytes:
/// from the rates at which writers hand over to the page cache in a guest.
const CALL: u64 = 7_000;
const NEW_PAGE: u64 = 5_000;
const PER_PAGE: u64 = 6_000;

/// What it costs to make a file, and to close it.
const CREATE: u64 = 150_000;

#[derive(Clone, Copy, Debug)]
pub(crate) enum What {
    /// The bytes from here to there are written.
    Write(u64, u64),
    /// The file is synced.
    Sync,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) what: What,
    pub(crate) file: usize,
    /// Not before.
    pub(crate) at: u64,
    /// In time of a CPU.
    pub(crate) costs: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Load {
    pub(crate) name: &'static str,
    pub(crate) writers: Vec<VecDeque<Step>>,
    pub(crate) files: usize,
    /// Whether the files lie one behind the other, and not each in a place of its own.
    pub(crate) is_packed: bool,
    /// That are written.
    pub(crate) bytes: u64,
}

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % end
    }
}

fn write(file: usize, from: u64, bytes: u64, at: u64) -> Step {
    let new = (from + bytes).div_ceil(PAGE) - from.div_ceil(PAGE);
    Step {
        what: What::Write(from, from + bytes),
        file,
        at,
        // Of more pages than one, the folios are as large as the write.
        costs: CALL + new.min(1) * NEW_PAGE + bytes * PER_PAGE / PAGE,
    }
}

fn load(name: &'static str, files: usize, writers: Vec<VecDeque<Step>>) -> Load {
    let bytes = |step: &Step| match step.what {
        What::Write(from, to) => to - from,
        What::Sync => 0,
    };
    let bytes = writers.iter().flatten().map(bytes).sum();
    Load {
        name,
        writers,
        files,
        is_packed: false,
        bytes,
    }
}

fn in_a_row(name: &'static str, writers: usize, each: u64, of: u64, every: u64) -> Load {
    let steps = |file| (0..of / each).map(move |i| write(file, i * each, each, i * every));
    let writers = (0..writers).map(|file| steps(file).collect());
    load(name, writers.len(), writers.collect())
}

fn append(records: u64) -> Load {
    let mut random = Random(1);
    let writers = (0..4).map(|file| {
        let mut end = 0;
        let mut steps = VecDeque::new();
        for record in 1..=records {
            let bytes = 300 + random.below(3797);
            steps.push_back(write(file, end, bytes, 0));
            end += bytes;
            if record % 2000 == 0 {
                steps.push_back(Step {
                    what: What::Sync,
                    file,
                    at: 0,
                    costs: CALL,
                });
            }
        }
        steps
    });
    load("append", 4, writers.collect())
}

fn random(writes: u64, pages: u64) -> Load {
    let mut random = Random(2);
    let steps = (0..writes).map(|_| write(0, random.below(pages) * PAGE, PAGE, 0));
    load("random", 1, vec![steps.collect()])
}

fn new_files(files: usize) -> Load {
    let steps = (0..files).flat_map(|file| {
        let bytes = PAGE << (file % 7);
        let each = bytes.min(64 << 10);
        (0..bytes / each).map(move |i| {
            let mut step = write(file, i * each, each, 0);
            step.costs += if i == 0 { CREATE } else { 0 };
            step
        })
    });
    Load {
        is_packed: true,
        ..load("new files", files, vec![steps.collect()])
    }
}

/// All of them.
pub(crate) fn loads() -> Vec<Load> {
    vec![
        in_a_row("4 KiB", 1, PAGE, 96 << 20, 0),
        in_a_row("64 KiB", 1, 64 << 10, 256 << 20, 0),
        append(16_000),
        in_a_row("paced", 4, PAGE, 12 << 20, MS),
        in_a_row("trickle", 1, PAGE, 2 << 20, 4 * MS),
        random(12_288, (208 << 20) / PAGE),
        in_a_row("16 paced", 16, PAGE, 2 << 20, 2 * MS),
        in_a_row("32 writers", 32, 64 << 10, 6656 << 10, 0),
        new_files(2000),
    ]
}
