// SPDX-License-Identifier: GPL-2.0

//! The flusher of a machine: it serves requests by rounds, writes in the background, and syncs.

use super::drive::{Drive, PAGE};
use super::file::Request;
use super::load::Load;
use super::machine::{Machine, Policy, BACKGROUND};
use super::wb::MS;
use std::collections::VecDeque;
use writeback::kick::{consume, ended, go_on, rest};
use writeback::pace::Room;
use writeback::round::{
    chunk, kept, portion, round, Flusher, Has, Lists, Next, Portion, Purpose, Written,
};

/// What it takes to wake it and to look at its lists, to begin with an inode, which has to get its
/// blocks, to submit a page, and to submit a request.
const WAKE: u64 = 60_000;
const INODE: u64 = 150_000;
const SUBMIT_PAGE: u64 = 6_000;
const SUBMIT: u64 = 30_000;

/// Pages that are looked up at a time.
const LOOKED_UP: usize = 31;

/// Pages of an inode that C writes at least, and of which it writes a multiple.
const CHUNK: i64 = 1024;

/// Requests that are gathered, and how many pages the last of them may have, before they are submitted.
const PLUGGED: usize = 32;
const PLUGGED_PAGES: usize = (128 << 10) / PAGE as usize;

/// What a load has cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    /// MiB a second, until all was on the drive.
    pub(crate) to_durable: f64,
    /// KiB of a write of the drive.
    pub(crate) each_write: f64,
    /// Bytes that the drive has written, by those of the load.
    pub(crate) amplification: f64,
    /// Of the flusher, for each MiB.
    pub(crate) wake_ups: f64,
    /// MiB.
    pub(crate) peak_dirty: f64,
    /// Milliseconds that a page stayed dirty at most.
    pub(crate) oldest: f64,
}

/// Lets a load run until all of it is on the drive.
pub(crate) fn run(load: &Load, policy: Policy, drive: Drive) -> Figures {
    let mut flusher = Running {
        machine: Machine::new(load, policy, drive),
        plug: Vec::new(),
        io: VecDeque::new(),
    };
    while !flusher.machine.is_over() {
        flusher.sleep();
        flusher.work();
    }
    flusher.sync();
    let Machine { drive, seen, .. } = &flusher.machine;
    let mebibytes = load.bytes as f64 / f64::from(1 << 20);
    Figures {
        to_durable: mebibytes * 1000.0 * MS as f64 / flusher.machine.now() as f64,
        each_write: (drive.pages * PAGE) as f64 / 1024.0 / drive.writes as f64,
        amplification: (drive.pages * PAGE) as f64 / load.bytes as f64,
        wake_ups: seen.wake_ups as f64 / mebibytes,
        peak_dirty: (seen.peak_dirty as u64 * PAGE) as f64 / f64::from(1 << 20),
        oldest: seen.oldest as f64 / MS as f64,
    }
}

struct Running {
    machine: Machine,
    plug: Vec<Request>,
    /// What is queued to be written.
    io: VecDeque<usize>,
}

impl Running {
    /// Until it is woken, its timer is due, or the load is over.
    fn sleep(&mut self) {
        let machine = &mut self.machine;
        loop {
            if machine.timer.is_some_and(|at| at <= machine.now()) {
                machine.timer = None;
                break;
            }
            if machine.woken || machine.is_over() {
                break;
            }
            machine.go_on(machine.timer.unwrap_or(u64::MAX));
        }
        machine.woken = false;
        machine.seen.wake_ups += 1;
    }

    fn work(&mut self) {
        self.machine.spend(WAKE);
        if self.machine.policy == Policy::Buffered {
            while self.machine.wb.dirty.get() > BACKGROUND && self.write_some() {}
            return;
        }
        if let Some(asked) = consume(&self.machine.wb) {
            let budget = asked.pages;
            self.machine.look(asked);
            let done = round(self, budget, Purpose::Alone.paced(asked.rest_ms));
            self.unplug();
            self.machine.end_round(done);
            ended(&self.machine.wb, budget, done);
            go_on(&self.machine.wb);
        }
        if let Some(milliseconds) = rest(&self.machine.wb) {
            self.machine.arm(milliseconds);
        }
    }

    /// Writes a portion of what there is, before it looks whether that is enough. Says whether there
    /// was anything.
    fn write_some(&mut self) -> bool {
        let mut written = 0;
        while written < CHUNK {
            let Some(file) = self.machine.listed.pop_front() else {
                break;
            };
            written += self.write_file(file, CHUNK);
            self.requeue(file);
        }
        self.unplug();
        written > 0
    }

    /// Writes all, and waits for it.
    fn sync(&mut self) {
        loop {
            for _ in 0..self.machine.listed.len() {
                let file = self.machine.listed.pop_front().unwrap();
                self.write_file(file, i64::MAX);
                self.requeue(file);
            }
            self.unplug();
            if self.machine.drive.under_way == 0 && self.machine.wb.dirty.get() == 0 {
                break;
            }
            self.machine.go_on(u64::MAX);
        }
    }

    /// What becomes of a file that was written.
    fn requeue(&mut self, file: usize) {
        if self.machine.files[file].dirty.is_empty() {
            self.machine.files[file].is_listed = false;
        } else {
            self.machine.list(file);
        }
        self.update_queue();
    }

    fn update_queue(&mut self) {
        let some = !self.machine.listed.is_empty() || !self.io.is_empty();
        self.machine.wb.queue.set(some);
    }

    /// Writes so many pages of a file, from where it was left to its end, and those in front of that
    /// afterwards. Returns how many it were.
    fn write_file(&mut self, number: usize, most: i64) -> i64 {
        self.machine.spend(INODE);
        let start = self.machine.files[number].cursor;
        let mut written = 0;
        let mut bio: Option<Request> = None;
        for (mut from, to) in [(start, u64::MAX), (0, start)] {
            while written < most {
                let batch = LOOKED_UP.min(usize::try_from(most - written).unwrap());
                let pages = self.machine.files[number].next(from, to, batch);
                let Some(&last) = pages.last() else { break };
                self.machine.spend(SUBMIT_PAGE * pages.len() as u64);
                for page in pages {
                    // Somebody else may have written it meanwhile.
                    if !self.machine.files[number].dirty.contains_key(&page)
                        || self.machine.files[number].under_way.contains(&page)
                    {
                        continue;
                    }
                    let block = self.machine.take(number, page);
                    written += 1;
                    match &mut bio {
                        Some(bio) if bio.end() == block => bio.pages.push((number, page)),
                        _ => {
                            let new = Request {
                                block,
                                pages: vec![(number, page)],
                            };
                            if let Some(full) = bio.replace(new) {
                                self.gather(full);
                            }
                        }
                    }
                    if bio
                        .as_ref()
                        .is_some_and(|bio| bio.pages.len() as u64 == Drive::LARGEST)
                    {
                        self.gather(bio.take().unwrap());
                    }
                }
                from = last + 1;
                self.machine.files[number].cursor = from;
            }
        }
        if let Some(last) = bio {
            self.gather(last);
        }
        written
    }

    /// Puts a request to those that are gathered, or to the last of them where they touch.
    fn gather(&mut self, request: Request) {
        let pages = request.pages.len();
        if let Some(last) = self.plug.last_mut() {
            if last.end() == request.block && (last.pages.len() + pages) as u64 <= Drive::LARGEST {
                return last.pages.extend(request.pages);
            }
            if last.pages.len() >= PLUGGED_PAGES || self.plug.len() >= PLUGGED {
                self.unplug();
            }
        }
        self.plug.push(request);
    }

    /// Submits what is gathered, as the drive takes it.
    fn unplug(&mut self) {
        for request in std::mem::take(&mut self.plug) {
            while self.machine.drive.under_way >= Drive::DEPTH {
                self.machine.go_on(u64::MAX);
            }
            self.machine.spend(SUBMIT);
            self.machine.submit(request);
        }
    }
}

impl Flusher for Running {
    const PORTION: i64 = portion(12);

    type Lists<'a> = &'a mut Running;

    fn lock_lists(&mut self) -> &mut Running {
        self
    }

    fn others_wait(&self) -> bool {
        false
    }

    fn room(&mut self, first: bool) -> Room {
        self.machine.room(Self::PORTION, first)
    }
}

impl Lists for &mut Running {
    fn park(&mut self) {}

    fn next(&mut self, _: usize) -> Option<Next> {
        let &file = self.machine.listed.front()?;
        Some(Next::Ours(if self.machine.files[file].dirty.is_empty() {
            Has::Nothing
        } else {
            Has::Dropbehind
        }))
    }

    fn queue_next(&mut self, _: bool) {
        let file = self.machine.listed.pop_front().unwrap();
        self.io.push_back(file);
    }

    fn release_next(&mut self) {
        let file = self.machine.listed.pop_front().unwrap();
        self.machine.files[file].is_listed = false;
        self.update_queue();
    }

    fn hand_over_next(&mut self) {
        unreachable!("there is no other work");
    }

    fn write(&mut self, portion: Portion) -> Written {
        let request = if portion.whole {
            Drive::LARGEST as i64
        } else {
            0
        };
        let (mut left, mut all_kept) = (portion.pages, 0);
        while left > 0 {
            let Some(file) = self.io.pop_front() else {
                break;
            };
            let most = ((left + CHUNK) / CHUNK * CHUNK).min(portion.most);
            let chunk = chunk(most, self.machine.dirty(file), request);
            let written = self.write_file(file, chunk.pages);
            let kept = kept(chunk.rest, chunk.pages - written);
            all_kept += kept;
            left -= written + kept;
            self.requeue(file);
        }
        Written {
            pages: portion.pages - left - all_kept,
            kept: all_kept,
            progress: left + all_kept < portion.pages,
            all: self.io.is_empty(),
        }
    }

    fn unqueue(&mut self) {
        while let Some(file) = self.io.pop_back() {
            self.machine.listed.push_front(file);
        }
        self.machine.count_inodes();
        self.update_queue();
    }
}
