// SPDX-License-Identifier: GPL-2.0

//! A machine: writers, the flusher and the drive's completions share one CPU in turns. It stands for
//! the two of a guest whose drive is emulated on the same host, as the benchmark has it.
//!
//! The flusher is the program that runs, and the machine goes on by itself whenever the flusher spends
//! time or waits.

use super::drive::{Drive, Queue, PAGE};
use super::file::{File, Request};
use super::load::{Load, Step, What};
use super::wb::{Wb, MS};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use writeback::kick::{ask, kick, Request as Asked, Run, Why};
use writeback::pace::{Bounds, DeviceWrites, KickAt, Pace, Progress, Room};
use writeback::round::Ended;

/// For how long a task has the CPU when others want it.
const TURN: u64 = 50_000;

/// What the drive's interrupt and the drive's emulation take, and to clean or drop a page.
const COMPLETION: u64 = 60_000;
const CLEAN_PAGE: u64 = 6_000;

/// How long the drive takes to flush its cache.
const FLUSH: u64 = 100_000;

/// For how long a writer pauses where too much is dirty.
const PAUSE: u64 = 10 * MS;

/// Pages of a machine with 1 GB that may be dirty: background writeback begins, and writers pause.
pub(crate) const BACKGROUND: i64 = 18_500;
const FREE_RUN: i64 = 27_750;

/// When the flusher writes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Policy {
    /// Where the page cache is full of dirty pages, and for a sync.
    Buffered,
    /// As soon as a page is dirty.
    Kick,
    /// At the pace of the wb, within bounds, where the wb's estimate of the bandwidth is the right one
    /// by this factor.
    Adaptive(Bounds, f64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Task {
    Writer(usize),
    Flusher,
    /// The end of requests. Nobody waits for it.
    Completion,
}

#[derive(Debug)]
enum Event {
    /// The next step of a writer may begin.
    Ready(usize),
    Done(Request),
}

#[derive(Debug)]
struct Timed {
    at: u64,
    number: u64,
    event: Event,
}

impl PartialEq for Timed {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}

impl Eq for Timed {}

impl PartialOrd for Timed {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timed {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

/// What has become of the load so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) peak_dirty: i64,
    /// For how long the page waited that waited longest.
    pub(crate) oldest: u64,
    pub(crate) wake_ups: u64,
}

pub(crate) struct Machine {
    pub(crate) wb: Wb,
    pub(crate) policy: Policy,
    pub(crate) files: Vec<File>,
    /// Files with dirty pages, in the order in which the flusher takes them.
    pub(crate) listed: VecDeque<usize>,
    pub(crate) drive: Queue,
    pub(crate) timer: Option<u64>,
    pub(crate) woken: bool,
    pub(crate) seen: Seen,
    bandwidth: u64,
    pace: Pace,
    kick_at: KickAt,
    inodes: u32,
    /// What the drive had written when the wb looked last.
    looked: (u64, u64),
    /// When the wb itself was looked at, and what it had had written then.
    looked_at_wb: (u64, u64),
    /// When a round has ended that has written something.
    served: u64,
    /// What the round that runs has found.
    found: i64,
    writers: Vec<VecDeque<Step>>,
    /// Writers that wait for their file to be on the drive.
    syncing: Vec<(usize, usize)>,
    running: usize,
    is_packed: bool,
    next_block: u64,
    cpu: VecDeque<(Task, u64)>,
    /// Who has the CPU, and what is left of its turn.
    turn: (Task, u64),
    flusher_runs: bool,
    events: BinaryHeap<Reverse<Timed>>,
    numbers: u64,
    pages_under_way: i64,
}

impl Machine {
    pub(crate) fn new(load: &Load, policy: Policy, drive: Drive) -> Self {
        let bounds = policy.bounds();
        let pace = Pace::new(&bounds);
        let estimate = match policy {
            Policy::Adaptive(_, estimate) => estimate,
            _ => 1.0,
        };
        let bandwidth = (drive.bandwidth() as f64 * estimate) as u64;
        let mut machine = Self {
            wb: Wb::default(),
            policy,
            files: (0..load.files).map(|_| File::default()).collect(),
            listed: VecDeque::new(),
            drive: Queue::new(drive),
            timer: None,
            woken: false,
            seen: Seen::default(),
            bandwidth,
            pace,
            kick_at: pace.kick_at(&bounds, bandwidth, BACKGROUND as u64),
            inodes: 0,
            looked: (0, 0),
            looked_at_wb: (0, 0),
            served: 0,
            found: 0,
            writers: load.writers.clone(),
            syncing: Vec::new(),
            running: load.writers.len(),
            is_packed: load.is_packed,
            next_block: 0,
            cpu: VecDeque::new(),
            turn: (Task::Completion, 0),
            flusher_runs: false,
            events: BinaryHeap::new(),
            numbers: 0,
            pages_under_way: 0,
        };
        machine.publish();
        for writer in 0..load.writers.len() {
            machine.next_step(writer);
        }
        machine
    }

    pub(crate) fn now(&self) -> u64 {
        self.wb.now.get()
    }

    /// Whether no writer has anything left to do.
    pub(crate) fn is_over(&self) -> bool {
        self.running == 0
    }

    fn event(&mut self, at: u64, event: Event) {
        self.numbers += 1;
        let number = self.numbers;
        self.events.push(Reverse(Timed { at, number, event }));
    }

    fn next_event(&self) -> Option<u64> {
        self.events.peek().map(|Reverse(timed)| timed.at)
    }

    /// Has the CPU do something, or the time pass until something happens, or is `until`.
    pub(crate) fn go_on(&mut self, until: u64) {
        while self.next_event().is_some_and(|at| at <= self.now()) {
            let Reverse(timed) = self.events.pop().unwrap();
            match timed.event {
                Event::Ready(writer) => self.begin_step(writer),
                Event::Done(request) => self.done(request),
            }
        }
        let Some((task, costs)) = self.cpu.pop_front() else {
            let next = self.next_event().map_or(until, |at| at.min(until));
            self.wb.now.set(next.max(self.now()));
            return;
        };
        let left = match self.turn {
            (same, left) if same == task && left > 0 => left,
            _ => TURN,
        };
        let turn = costs.min(left);
        self.turn = (task, left - turn);
        self.wb.now.set(self.now() + turn);
        match task {
            _ if turn < costs => self.cpu.push_back((task, costs - turn)),
            Task::Writer(writer) => self.end_step(writer),
            Task::Flusher => self.flusher_runs = false,
            Task::Completion => {}
        }
    }

    /// Gives a task something to do: at once in what is left of its turn, or when the others had theirs.
    fn queue(&mut self, task: Task, costs: u64) {
        if self.turn.0 == task && self.turn.1 > 0 {
            self.cpu.push_front((task, costs));
        } else {
            self.cpu.push_back((task, costs));
        }
    }

    /// The flusher spends time of the CPU.
    pub(crate) fn spend(&mut self, costs: u64) {
        self.flusher_runs = true;
        self.queue(Task::Flusher, costs);
        while self.flusher_runs {
            self.go_on(u64::MAX);
        }
    }

    /// Has a writer go on with its next step.
    fn next_step(&mut self, writer: usize) {
        match self.writers[writer].front().map(|step| step.at) {
            Some(at) if at <= self.now() => self.begin_step(writer),
            Some(at) => self.event(at, Event::Ready(writer)),
            None => self.running -= 1,
        }
    }

    fn begin_step(&mut self, writer: usize) {
        let costs = self.writers[writer][0].costs;
        if self.wb.dirty.get() + self.pages_under_way > FREE_RUN {
            return self.event(self.now() + PAUSE, Event::Ready(writer));
        }
        self.queue(Task::Writer(writer), costs);
    }

    fn end_step(&mut self, writer: usize) {
        let step = self.writers[writer][0];
        match step.what {
            What::Write(from, to) => {
                self.writers[writer].pop_front();
                self.write(step.file, from, to);
                self.next_step(writer);
            }
            What::Sync => {
                self.syncing.push((step.file, writer));
                self.sync(step.file);
            }
        }
    }

    fn write(&mut self, number: usize, from: u64, to: u64) {
        let now = self.now();
        let file = &mut self.files[number];
        let mut new = 0;
        for page in from / PAGE..to.div_ceil(PAGE) {
            file.dirty.entry(page).or_insert_with(|| {
                new += 1;
                now
            });
        }
        self.wb.dirty.set(self.wb.dirty.get() + new);
        self.seen.peak_dirty = self.seen.peak_dirty.max(self.wb.dirty.get());
        if !file.is_listed {
            self.list(number);
        }
        let run = match self.policy {
            Policy::Buffered => (self.wb.dirty.get() > BACKGROUND).then_some(Run::Now),
            Policy::Kick => kick(&self.wb, || true).then_some(Run::Now),
            Policy::Adaptive(..) => ask(&self.wb, || true),
        };
        match run {
            Some(Run::Now) => self.woken = true,
            Some(Run::Within(milliseconds)) => self.arm(milliseconds),
            None => {}
        }
    }

    /// Puts a file at the end of the flusher's queue.
    pub(crate) fn list(&mut self, file: usize) {
        self.files[file].is_listed = true;
        self.listed.push_back(file);
        self.wb.queue.set(true);
        self.inodes += 1;
        self.publish();
    }

    /// Once some were written, those count that wait.
    pub(crate) fn count_inodes(&mut self) {
        self.inodes = self.listed.len() as u32;
        self.publish();
    }

    /// Has the flusher run in so many milliseconds, if not earlier.
    pub(crate) fn arm(&mut self, milliseconds: u32) {
        let at = self.now() + u64::from(milliseconds) * MS;
        self.timer = Some(self.timer.map_or(at, |timer| timer.min(at)));
    }

    /// What writers see of the pace.
    fn publish(&mut self) {
        let bounds = self.policy.bounds();
        let at = self.kick_at.with_inodes(&bounds, self.inodes);
        self.wb.kick_at.set(at + self.found);
        self.wb.delay_ms.set(self.pace.delay_ms);
    }

    /// The flusher looks at what the drive has written, and sets the pace by it.
    pub(crate) fn look(&mut self, asked: Asked) {
        let bounds = self.policy.bounds();
        let device = self.device();
        self.looked = (self.drive.writes, self.drive.pages);
        if self.pages_under_way == 0 {
            self.look_at_wb();
            self.pace = self.pace.after_idling();
        }
        self.pace = self.pace.after(&bounds, device, asked.why == Why::Size);
        self.kick_at = self
            .pace
            .kick_at(&bounds, self.bandwidth, BACKGROUND as u64);
        self.found = asked.pages;
        self.publish();
    }

    /// What the drive has written since the wb looked.
    fn device(&self) -> DeviceWrites {
        DeviceWrites {
            writes: self.drive.writes - self.looked.0,
            kib: (self.drive.pages - self.looked.1) * (PAGE >> 10),
            largest_kib: Drive::LARGEST * (PAGE >> 10),
            counts: true,
        }
    }

    /// Has the wb's progress begin now.
    fn look_at_wb(&mut self) {
        self.looked_at_wb = (self.now(), self.drive.pages);
    }

    /// A round has ended.
    pub(crate) fn end_round(&mut self, round: Ended) {
        if !round.has_spared_the_device() {
            self.served = self.now();
        }
        if self.found > 0 {
            self.found = round.kept;
            self.publish();
        }
        self.look_at_wb();
    }

    /// What may be given to the drive.
    pub(crate) fn room(&mut self, most: i64, first: bool) -> Room {
        let (then, pages) = self.looked_at_wb;
        let progress = Progress {
            written: (self.drive.pages - pages) as i64,
            under_way: self.pages_under_way,
            elapsed_us: (self.now() - then) / 1000,
        };
        let mut looked = None;
        let device = self.device();
        let (pace, room) = self.pace.room(device, || *looked.insert(progress), most);
        self.pace = pace;
        if matches!(room, Room::Pages(_)) && looked.is_some_and(Progress::is_enough) {
            self.look_at_wb();
        }
        if let Room::Busy(_) = room {
            if first && self.now() - self.served >= u64::from(self.pace.delay_ms) * MS {
                return Room::Pages(most);
            }
            // Besides those that there are.
            self.found = 0;
            self.publish();
            self.wb
                .kick_at
                .set(self.wb.kick_at.get() + self.wb.dirty.get());
        }
        room
    }

    /// The dirty pages of a file.
    pub(crate) fn dirty(&self, number: usize) -> i64 {
        self.files[number].dirty.len() as i64
    }

    /// Takes a dirty page to be written, and says in which block.
    pub(crate) fn take(&mut self, number: usize, page: u64) -> u64 {
        let now = self.now();
        let file = &mut self.files[number];
        let since = file.dirty.remove(&page).unwrap();
        file.under_way.insert(page);
        self.seen.oldest = self.seen.oldest.max(now - since);
        self.wb.dirty.set(self.wb.dirty.get() - 1);
        self.pages_under_way += 1;
        let place = match file.place {
            Some(place) => place,
            None if self.is_packed => {
                let place = self.next_block;
                self.next_block += file.dirty.len() as u64 + 1;
                place
            }
            None => (number as u64) << 32,
        };
        file.place = Some(place);
        place + page
    }

    pub(crate) fn submit(&mut self, request: Request) {
        let at = self.drive.submit(self.now(), request.pages.len() as u64);
        self.event(at, Event::Done(request));
    }

    fn done(&mut self, request: Request) {
        let pages = request.pages.len() as u64;
        self.drive.done(pages);
        self.pages_under_way -= pages as i64;
        self.queue(Task::Completion, COMPLETION + pages * CLEAN_PAGE);
        for (file, page) in request.pages {
            self.files[file].under_way.remove(&page);
            if self.files[file].under_way.is_empty() {
                self.sync(file);
            }
        }
    }

    /// A writer that syncs its file writes what can be written, and goes on when all is on the drive.
    fn sync(&mut self, file: usize) {
        let Some(place) = self.syncing.iter().position(|&(of, _)| of == file) else {
            return;
        };
        let mut requests: Vec<Request> = Vec::new();
        for page in self.files[file].next(0, u64::MAX, usize::MAX) {
            let block = self.take(file, page);
            match requests.last_mut() {
                Some(last) if last.end() == block && last.pages.len() < Drive::LARGEST as usize => {
                    last.pages.push((file, page));
                }
                _ => requests.push(Request {
                    block,
                    pages: vec![(file, page)],
                }),
            }
        }
        for request in requests {
            self.submit(request);
        }
        if self.files[file].under_way.is_empty() {
            let (_, writer) = self.syncing.remove(place);
            self.writers[writer].pop_front();
            match self.writers[writer].front() {
                Some(_) => self.event(self.now() + FLUSH, Event::Ready(writer)),
                None => self.next_step(writer),
            }
        }
    }
}

impl Policy {
    /// Those of its pace. Others have none, and are asked all the same.
    fn bounds(&self) -> Bounds {
        match self {
            Self::Adaptive(bounds, _) => *bounds,
            _ => writeback::pace::BOUNDS,
        }
    }
}
