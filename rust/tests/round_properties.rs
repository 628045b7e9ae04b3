// SPDX-License-Identifier: GPL-2.0

//! Rounds over random inodes, beside random work. No inode starves, the inodes of other work are
//! not touched, and the cost of a round depends on what it writes.

#![cfg(not(loom))]

use proptest::prelude::*;
use std::collections::VecDeque;
use writeback::kick::DELAY_MS;
use writeback::round::{
    again_in, portion, quota, round, work_takes_inodes, Device, During, Flusher, Lists, Purpose,
    Written, FRUITLESS, INODES, LOOKS,
};

#[derive(Clone, Debug, PartialEq)]
struct Inode {
    id: usize,
    dropbehind: i64,
    /// Ordinary dirty pages, which lie before the dropbehind pages in the file.
    ordinary: i64,
    /// Another task writes the inode.
    busy: bool,
    of_sync: bool,
}

impl Inode {
    fn is_ours(&self, looks: usize) -> bool {
        !self.of_sync && (self.ordinary >= looks as i64 || self.dropbehind > 0)
    }
}

/// The lists of a wb. The last inode of each is the next.
#[derive(Clone, Debug, Default)]
struct Wb {
    dontcache: VecDeque<Inode>,
    dirty: VecDeque<Inode>,
    io: VecDeque<Inode>,
    more_io: VecDeque<Inode>,
    works: usize,
    /// The inodes that were written, in order.
    written: Vec<usize>,
    looks: usize,
    longest_hold: usize,
    largest_write: i64,
    writes: usize,
    /// The number of the write during which a work item is queued.
    work_comes: Option<usize>,
    /// The number of writes after which the device has enough to do.
    busy_from: Option<usize>,
    /// The round was told so.
    found_busy: bool,
    /// Milliseconds since a round was last served.
    served_ms_ago: u64,
    /// The pages that the device has room for. A whole portion if none.
    room: Option<i64>,
    /// The number of pages that are dirtied in an inode while it is written.
    comes: i64,
}

impl Flusher for Wb {
    const PORTION: i64 = PORTION;

    type Lists<'a> = &'a mut Wb;

    fn lock_lists(&mut self) -> &mut Wb {
        self.looks = 0;
        self
    }

    fn others_wait(&self) -> bool {
        self.works > 0
    }

    fn has_others(&self) -> bool {
        !self.dirty.is_empty()
    }

    fn served_ms_ago(&self) -> u64 {
        self.served_ms_ago
    }

    fn device_limit(&mut self) -> Result<i64, u32> {
        match self.busy_from {
            Some(writes) if self.writes >= writes => {
                self.found_busy = true;
                Err(BUSY_FOR)
            }
            _ => Ok(self.room.unwrap_or(PORTION)),
        }
    }
}

const PORTION: i64 = portion(12);

/// For how many milliseconds a device is busy.
const BUSY_FOR: u32 = 30;

impl Lists for &mut Wb {
    fn park(&mut self) {
        self.more_io.extend(self.io.drain(..));
    }

    fn next_is_ours(&mut self, looks: usize) -> Option<bool> {
        let ours = self.dontcache.back()?.is_ours(looks);
        self.looks += looks;
        self.longest_hold = self.longest_hold.max(self.looks);
        Some(ours)
    }

    fn queue_next(&mut self) {
        let inode = self.dontcache.pop_back().unwrap();
        assert!(!inode.of_sync, "taken from a sync");
        self.io.push_front(inode);
    }

    fn leave_next(&mut self) {
        let inode = self.dontcache.pop_back().unwrap();
        self.more_io.push_front(inode);
    }

    fn write(&mut self, pages: i64, most: i64) -> Written {
        assert!(most <= self.room.unwrap_or(PORTION));
        self.looks = 0;
        self.largest_write = self.largest_write.max(pages);
        let mut left = pages;
        let mut progress = false;
        while let Some(mut inode) = self.io.pop_back() {
            if inode.busy {
                self.dontcache.push_front(inode);
                continue;
            }
            let all = inode.ordinary + inode.dropbehind;
            let chunk = all.min(left.max(1).min(most));
            let ordinary = chunk.min(inode.ordinary);
            inode.ordinary -= ordinary;
            inode.dropbehind -= chunk - ordinary;
            inode.dropbehind += self.comes;
            left -= chunk;
            progress = true;
            self.written.push(inode.id);
            match inode.is_ours(LOOKS) {
                false if inode.ordinary == 0 => {}
                false => self.dirty.push_front(inode),
                true => self.dontcache.push_front(inode),
            }
            if left <= 0 {
                break;
            }
        }
        self.writes += 1;
        if self.work_comes == Some(self.writes) {
            self.works += 1;
        }
        Written {
            pages: pages - left,
            progress,
            all: self.io.is_empty(),
        }
    }

    fn unqueue(&mut self) {
        let rest: Vec<_> = self.io.drain(..).collect();
        self.dontcache.extend(rest);
    }
}

impl Wb {
    fn count(&self) -> i64 {
        let lists = [&self.dontcache, &self.dirty, &self.io, &self.more_io];
        let inodes = lists.into_iter().flatten();
        inodes.map(|inode| inode.dropbehind).sum()
    }

    fn check_costs(&self) {
        assert!(self.longest_hold <= INODES * LOOKS, "a long hold");
        assert!(self.largest_write <= PORTION, "a large portion");
        assert!(self.io.is_empty(), "something stayed queued");
    }
}

fn inodes(max: usize) -> impl Strategy<Value = Vec<Inode>> {
    let inode = (
        0..3000i64,
        0..200i64,
        prop::bool::weighted(0.2),
        any::<bool>(),
    );
    prop::collection::vec(inode, 0..max).prop_map(|all| {
        let inode = |(id, (dropbehind, ordinary, busy, of_sync))| Inode {
            id,
            dropbehind: dropbehind % 40 * (dropbehind % 3),
            ordinary,
            busy,
            of_sync,
        };
        all.into_iter().enumerate().map(inode).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    /// A waiter waits for at most one portion.
    #[test]
    fn work_waits_for_at_most_one_portion(
        inodes in inodes(300), comes in 1..5usize, budget in 0..100_000i64,
    ) {
        let mut wb = Wb { dontcache: inodes.into(), work_comes: Some(comes), ..Wb::default() };
        wb.dontcache.iter_mut().for_each(|inode| inode.of_sync = false);
        round(&mut wb, budget, i64::MAX, Purpose::Alone);
        wb.check_costs();
        prop_assert!(wb.writes <= comes, "{} writes", wb.writes);

        wb.works = 1;
        let writes = wb.writes;
        round(&mut wb, budget, i64::MAX, Purpose::Alone);
        prop_assert!(wb.writes <= writes + 1, "more than a portion before the work");
    }

    #[test]
    fn a_round_beside_other_work_is_one_portion(inodes in inodes(300), budget in 0..100_000i64) {
        let mut wb = Wb { dontcache: inodes.into(), ..Wb::default() };
        round(&mut wb, budget, i64::MAX, Purpose::Beside);
        wb.check_costs();
        prop_assert!(wb.writes <= 1);
    }

    /// Inodes that other work has queued stay queued, in their order. Inodes that a sync is to
    /// write, and inodes without dirty dropbehind pages, are left to other work.
    #[test]
    fn inodes_of_other_work_are_not_touched(
        ours in inodes(100), queued in inodes(20), dirty in inodes(50), budget in 0..10_000i64,
    ) {
        let (mut dirty, mut queued) = (dirty, queued);
        dirty.iter_mut().for_each(|inode| inode.id += 1000);
        queued.iter_mut().for_each(|inode| inode.id += 2000);
        let mut wb = Wb {
            dontcache: ours.clone().into(),
            io: queued.clone().into(),
            dirty: dirty.into(),
            ..Wb::default()
        };
        round(&mut wb, budget, i64::MAX, Purpose::Alone);
        wb.check_costs();
        let parked: Vec<_> = wb.more_io.iter().filter(|inode| inode.id >= 2000).cloned().collect();
        prop_assert_eq!(parked, queued);
        for inode in ours.iter().filter(|inode| !inode.is_ours(LOOKS)) {
            prop_assert!(!wb.written.contains(&inode.id), "foreign pages");
            prop_assert!(wb.more_io.contains(inode) || wb.dontcache.contains(inode));
        }
        prop_assert!(wb.written.iter().all(|id| *id < 1000));
    }

    /// A round that leaves its inodes to a sync reports progress: the next round may write them.
    #[test]
    fn inodes_left_to_a_sync_are_progress(inodes in inodes(100), budget in 1..10_000i64) {
        let mut wb = Wb { dontcache: inodes.into(), ..Wb::default() };
        wb.dontcache.iter_mut().for_each(|inode| inode.of_sync = true);
        let ended = round(&mut wb, budget, i64::MAX, Purpose::Beside);
        prop_assert_eq!(ended.pages, 0);
        prop_assert!(ended.progress);
    }

    /// A round with the exact count as its budget leaves only the pages of busy inodes, if there
    /// are no ordinary pages.
    #[test]
    fn a_round_writes_all_that_it_can(inodes in inodes(300)) {
        let mut wb = Wb { dontcache: inodes.into(), ..Wb::default() };
        wb.dontcache.iter_mut().for_each(|inode| {
            inode.of_sync = false;
            inode.ordinary = 0;
        });
        let count = wb.count();
        let busy: i64 = wb.dontcache.iter().filter(|i| i.busy).map(|i| i.dropbehind).sum();
        let written = round(&mut wb, count, i64::MAX, Purpose::Alone).pages;
        wb.check_costs();
        prop_assert_eq!(written, count - busy);
        prop_assert_eq!(wb.count(), busy);
        prop_assert!(wb.writes <= (count / PORTION) as usize + 300 / INODES + 1 + FRUITLESS);
    }

    /// A device that has enough to do gets no more pages, and the round comes again. A round beside
    /// other work does not spare the device, and a round without a budget does not come again.
    #[test]
    fn a_busy_device_gets_no_pages(
        inodes in inodes(300), busy_from in 0..4usize, budget in 0..100_000i64,
    ) {
        let mut wb = Wb { dontcache: inodes.into(), busy_from: Some(busy_from), ..Wb::default() };
        let ended = round(&mut wb, budget, i64::MAX, Purpose::Alone);
        wb.check_costs();
        prop_assert!(wb.writes <= busy_from);
        match ended.again_ms {
            None => {}
            Some(milliseconds) => {
                prop_assert_eq!((milliseconds, wb.writes), (BUSY_FOR, busy_from));
                prop_assert!(ended.progress);
            }
        }
        if budget > 0 {
            let before = wb.writes;
            wb.busy_from = Some(0);
            prop_assert_eq!(round(&mut wb, budget, i64::MAX, Purpose::Alone).again_ms, Some(BUSY_FOR));
            prop_assert_eq!(wb.writes, before);
            prop_assert_eq!(round(&mut wb, budget, i64::MAX, Purpose::Beside).again_ms, None);
        }
    }

    /// If the device has room for less than a portion, no write is larger than the room.
    #[test]
    fn no_write_is_larger_than_the_room(inodes in inodes(100), room_for in 1..PORTION) {
        let mut wb = Wb { dontcache: inodes.into(), room: Some(room_for), ..Wb::default() };
        let count = wb.count();
        round(&mut wb, count, i64::MAX, Purpose::Alone);
        wb.check_costs();
        prop_assert!(wb.largest_write <= room_for);
    }

    /// The budget may be too large, because other work has written the pages meanwhile. Even then
    /// the round does not write each page that is dirtied meanwhile.
    #[test]
    fn pages_that_come_are_left_to_the_next_round(
        inodes in inodes(INODES), comes in 0..16i64, more in any::<u32>(),
    ) {
        let pages: i64 = inodes.iter().map(|inode| inode.ordinary + inode.dropbehind).sum();
        let mut wb = Wb { dontcache: inodes.into(), comes, ..Wb::default() };
        let budget = wb.count() + i64::from(more);
        round(&mut wb, budget, i64::MAX, Purpose::Alone);
        wb.check_costs();
        let portions = usize::try_from(pages / PORTION).unwrap();
        prop_assert!(wb.writes <= portions + 2, "{} writes", wb.writes);
    }

    /// A round writes a large file to its end, in portions that the device has room for.
    #[test]
    fn a_large_file_is_written_to_its_end(
        pages in 1..5 * PORTION, room_for in proptest::option::of(100..PORTION),
    ) {
        let inode = Inode {
            id: 0,
            dropbehind: pages,
            ordinary: 0,
            busy: false,
            of_sync: false,
        };
        let mut wb = Wb { dontcache: [inode].into(), room: room_for, ..Wb::default() };
        prop_assert_eq!(round(&mut wb, pages, i64::MAX, Purpose::Alone).pages, pages);
    }

    /// Other inodes wait for a quota at most. Then another round follows, unless the device has
    /// enough.
    #[test]
    fn a_turn_is_followed_by_another(
        inodes in inodes(300), other in inodes(2), written in -10..10_000i64,
        busy_from in proptest::option::of(0..40usize),
    ) {
        let mut wb = Wb { dontcache: inodes.into(), busy_from, ..Wb::default() };
        let (count, quota) = (wb.count(), quota(12, written));
        wb.dirty.extend(other);
        let waits = wb.has_others();
        let ended = round(&mut wb, count, quota, Purpose::Alone);
        wb.check_costs();
        prop_assert!(!waits || ended.pages < quota + PORTION);
        // The round itself finds some that are not its own.
        let gives_way = wb.has_others() && (quota..count).contains(&ended.pages);
        let again = if wb.found_busy { Some(BUSY_FOR) } else { gives_way.then_some(0) };
        prop_assert_eq!(ended.again_ms, again);
    }

    /// Writers dirty some inodes again all the time. Each inode that waits is written within as many
    /// rounds as it takes to write all of them once.
    #[test]
    fn no_inode_starves(again in prop::collection::vec(0..40usize, 1..400)) {
        let inode = |id| Inode {
            id, dropbehind: 700, ordinary: 0, busy: false, of_sync: false,
        };
        let mut wb = Wb { dontcache: (0..40).map(inode).collect(), ..Wb::default() };
        let mut waits = [0usize; 40];
        for chunk in again.chunks(3) {
            wb.written.clear();
            round(&mut wb, 2000, i64::MAX, Purpose::Alone);
            for (id, waits) in waits.iter_mut().enumerate() {
                let waiting = wb.dontcache.iter().any(|inode| inode.id == id);
                let served = wb.written.contains(&id);
                *waits = if waiting && !served { *waits + 1 } else { 0 };
                // 40 inodes of 700 pages, 2000 pages a round.
                prop_assert!(*waits <= 40 * 700 / 2000 + 2, "{} waits", id);
            }
            for &id in chunk {
                match wb.dontcache.iter_mut().find(|inode| inode.id == id) {
                    Some(inode) => inode.dropbehind = 700,
                    None => wb.dontcache.push_front(inode(id)),
                }
            }
        }
    }

    /// If nothing is counted, the round removes stale inodes from the queue and writes nothing.
    #[test]
    fn without_a_budget_nothing_is_written(inodes in inodes(100)) {
        let mut wb = Wb { dontcache: inodes.into(), ..Wb::default() };
        wb.dontcache.iter_mut().for_each(|inode| {
            inode.dropbehind = 0;
            inode.ordinary %= LOOKS as i64;
            inode.of_sync = false;
        });
        prop_assert_eq!(round(&mut wb, 0, i64::MAX, Purpose::Alone).pages, 0);
        prop_assert!(wb.dontcache.is_empty());
        prop_assert!(wb.written.is_empty());
        wb.check_costs();
    }
}

/// A slow device gets what it writes in 40 ms, and waits if it has more than that.
#[test]
fn a_slow_device_is_spared() {
    let room = |written, under_way, elapsed_ms| {
        Device {
            written,
            under_way,
            elapsed_ms,
        }
        .limit()
    };
    // 12 KiB a millisecond.
    assert_eq!(room(240, 480, 20), Ok(Some(480)));
    assert_eq!(room(240, 600, 20), Err(30));
    assert_eq!(room(240, 4000, 20), Err(50));
    assert_eq!(room(1, 129, 20), Err(50));
    // Its speed is unknown: it is idle, the time is short, or it has done nothing yet.
    assert_eq!(room(1, 128, 20), Ok(None));
    assert_eq!(room(1, 4000, 4), Ok(None));
    assert_eq!(room(0, 4000, 20), Ok(None));
    assert_eq!(room(-1, 4000, 20), Ok(None));
    // It is fast: 32 KiB a millisecond.
    assert_eq!(room(640, 4000, 20), Ok(None));
    assert_eq!(room(639, 4000, 20), Err(50));
    // It gets at most 1 MiB at a time.
    assert_eq!(room(639, 1270, 20), Ok(Some(1024)));
}

/// Other work may keep a device busy for long. The first portion does not wait for it if the pages
/// have waited for the delay. If there is no other inode, the portion is small.
#[test]
fn pages_do_not_wait_for_a_device_that_is_always_busy() {
    let inode = Inode {
        id: 0,
        dropbehind: 2 * PORTION,
        ordinary: 0,
        busy: false,
        of_sync: false,
    };
    let written = |served_ms_ago, other: Option<&Inode>| {
        let mut wb = Wb {
            dontcache: [inode.clone()].into(),
            dirty: other.cloned().into_iter().collect(),
            busy_from: Some(0),
            served_ms_ago,
            ..Wb::default()
        };
        let ended = round(&mut wb, 2 * PORTION, i64::MAX, Purpose::Alone);
        assert_eq!(ended.again_ms, Some(BUSY_FOR));
        ended.pages
    };
    assert_eq!(written(DELAY_MS as u64 - 1, None), 0);
    assert_eq!(written(DELAY_MS as u64, None), PORTION / 4);
    assert_eq!(written(DELAY_MS as u64, Some(&inode)), PORTION);
}

/// Rounds beside a sync leave most of the time to the sync.
#[test]
fn rounds_beside_a_sync_are_rare() {
    let (mut now, mut served, mut rounds) = (0u64, 0u64, 0);
    while now < 10_000 {
        if During::Sync.purpose(now - served).is_some() {
            rounds += 1;
            now += 32;
            served = now;
        }
        now += 10;
    }
    assert!((10..=14).contains(&rounds), "{rounds} in ten seconds");
    assert_eq!(During::NextWork.purpose(0), None);
    assert_eq!(During::NextWork.purpose(100), Some(Purpose::Beside));
    assert_eq!(During::OtherWork.purpose(0), Some(Purpose::Alone));
}

/// A rescuer waits until another round may be served.
#[test]
fn a_rescuer_comes_back_after_the_interval() {
    assert_eq!(again_in(0, true, 40), 60);
    assert_eq!(again_in(0, true, 500), 0);
    assert_eq!(again_in(0, false, 40), 0);
    assert_eq!(again_in(30, true, 40), 30);
}

/// The next round sets queued inodes aside. A sync waits for no round.
#[test]
fn work_for_all_waits_for_a_requested_round() {
    assert!(!work_takes_inodes(false, true, true));
    assert!(work_takes_inodes(false, true, false));
    assert!(work_takes_inodes(false, false, true));
    assert!(work_takes_inodes(true, true, true));
}
