// SPDX-License-Identifier: GPL-2.0

//! The flusher's round: it writes dirty dropbehind pages after a kick.
//!
//! A wb keeps the inodes that may have dirty dropbehind folios in a separate list (`b_dontcache`).
//! New inodes go to its head, a round takes inodes from its tail. So an inode that is dirtied all
//! the time does not block another inode. A round
//!
//! - costs what it writes: it looks only at inodes that may have such folios, and at few dirty
//!   folios of each;
//! - writes in portions, and ends after one portion if a work item is queued;
//! - ends after a [`quota`] if there are other inodes to be written;
//! - gives a slow device small portions, and the next one when the last one is almost written
//!   ([`Device::limit`]);
//! - first takes the inodes that interrupted work has queued, if they may have such folios. Within
//!   work for `sync()` it skips all inodes that are queued, and those that the sync is to write:
//!   the sync would miss an inode whose dirtied time changes before the sync reaches it;
//! - holds the lock of the lists for at most [`INODES`] inodes and [`LOOKS`] dirty folios of each.
//!
//! After the delay, the flusher retries the pages that a round leaves. After a quota, the flusher
//! first does its other work, and then begins the next round.
//!
//! Times are in milliseconds, pages are those of the page cache.

use super::kick::{
    many,
    DELAY_MS, //
};

/// Pages of `1 << page_shift` bytes that a round writes before it checks for queued work. A power
/// of two, as the extents that file systems allocate.
pub const fn portion(page_shift: u32) -> i64 {
    (4 << 20) >> page_shift
}

/// Inodes that are queued under one hold of the lists' lock. With [`LOOKS`] at each inode, the lock
/// is held for less than 100,000 instructions (measured by `make micro`).
pub const INODES: usize = 16;

/// Dirty folios of an inode that are searched for a dropbehind folio. An inode with as many dirty
/// folios is assumed to have one.
pub const LOOKS: usize = 24;

/// How often a round writes all inodes of the list to the end of their files, if the list has fewer
/// than [`INODES`] inodes. C writes from a place in the file to its end, and begins at the
/// front of the file the next time. Pages that are dirty after that are new, or cannot be written.
pub const PASSES: usize = 2;

/// A round ends after so many consecutive passes that could write nothing of the queued inodes.
pub const FRUITLESS: usize = 32;

/// Minimum time between rounds within work for `sync()`, because a task waits for that work.
pub const IN_SYNC_MS: u64 = 700;

/// Minimum time between rounds in front of a work item. So a work item waits for at most one
/// portion.
pub const BETWEEN_MS: u64 = 100;

/// The result of [`Lists::write`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Pages that were written.
    pub pages: i64,
    /// Whether anything was done, even if an inode was only found clean.
    pub progress: bool,
    /// Whether every queued inode had its turn.
    pub all: bool,
}

/// The result of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Pages that were written.
    pub pages: i64,
    /// Delay until the next round, if the device has enough until then or other inodes have their
    /// turn.
    pub again_ms: Option<u32>,
    /// Whether anything was written, or the next round may write inodes that this round has not
    /// reached or has left to other work.
    pub progress: bool,
}

impl Ended {
    /// Whether the round wrote nothing because the device had enough.
    pub fn has_spared_the_device(self) -> bool {
        self.pages == 0 && self.again_ms.is_some()
    }
}

/// How many pages of `1 << page_shift` bytes a round writes before other inodes have their turn: as
/// many as were `written` since a round was last served, and at least 16 MiB.
pub fn quota(page_shift: u32, written: i64) -> i64 {
    written.max(many(page_shift))
}

/// A slow device gets another portion when it has less than this in flight, in milliseconds of the
/// device's time. The portion is as large, so up to twice as much is in flight. This is short,
/// because pages in memory may still get neighbours, and pages in the queue of a device do not.
pub const QUEUED_MS: i64 = 40;

/// A device with so much or less in flight is about to be idle, in KiB.
const IDLE: i64 = 128;

/// A slow device gets at most so much at a time, in KiB.
const MOST: i64 = 1024;

/// A device that writes so much or more in a millisecond is not slow, in KiB.
const FAST: i64 = 32;

/// What the device has written for a wb since a round was last served, or since the device was last
/// idle, and what is still in flight, in KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// What was written.
    pub written: i64,
    /// What is under writeback.
    pub under_way: i64,
    /// In how many milliseconds.
    pub elapsed_ms: i64,
}

impl Device {
    /// Whether the device is about to have nothing to do, so that its speed is unknown.
    pub fn is_idle(self) -> bool {
        self.under_way <= IDLE
    }

    /// How much the device may get at a time if it is known to be slow, in KiB, at most 1 MiB. None
    /// if it may get a whole portion. The error is the number of milliseconds after which the
    /// flusher is to try again, at most 50.
    pub fn limit(self) -> Result<Option<i64>, u32> {
        let fast = self.elapsed_ms.saturating_mul(FAST);
        // While the flusher occupies the only CPU, no completion is counted.
        let is_unknown = self.is_idle() || self.elapsed_ms < 5 || self.written <= 0;
        if is_unknown || self.written >= fast {
            return Ok(None);
        }
        let queued = self.written.saturating_mul(QUEUED_MS) / self.elapsed_ms;
        if self.under_way <= queued {
            return Ok(Some(queued.min(MOST)));
        }
        // The flusher comes back half of `QUEUED_MS` early, because it may take as long until it
        // runs.
        let busy_ms = self.under_way.saturating_mul(QUEUED_MS) / queued.max(1);
        Err(busy_ms.saturating_sub(QUEUED_MS / 2).min(50) as u32)
    }
}

/// The lists of a wb, locked.
pub trait Lists {
    /// Sets aside the inodes that other work has queued, in their order.
    fn park(&mut self);

    /// Returns whether this round writes the next inode: no sync beside the round writes it, and it
    /// has a dirty dropbehind folio or at least `looks` dirty folios. None if there is no inode.
    fn next_is_ours(&mut self, looks: usize) -> Option<bool>;

    /// Queues the next inode for [`Self::write`], behind inodes queued before.
    fn queue_next(&mut self);

    /// Queues the next inode for the next work item: a sync has to write it, or it has only other
    /// dirty data, which is written early rather than late. If the round runs within a sync that
    /// does not have to write the inode, the inode goes to the head of the list instead.
    fn leave_next(&mut self);

    /// Writes `pages` pages of the queued inodes, and no more than `portion` pages of an inode at a
    /// time. C may exceed the number, to finish the part of an inode that it has begun. The lists
    /// are unlocked meanwhile. An inode that is still dirty afterwards is at the head of the list
    /// to which it belongs.
    fn write(&mut self, pages: i64, portion: i64) -> Written;

    /// Puts queued inodes that were not reached back to the tail of the list, in their order.
    fn unqueue(&mut self);
}

/// The flusher of a wb.
pub trait Flusher {
    /// The result of [`portion`] for the page size of the kernel.
    const PORTION: i64;

    /// The wb's lists, while they are locked.
    type Lists<'a>: Lists
    where
        Self: 'a;

    /// Locks the lists.
    fn lock_lists(&mut self) -> Self::Lists<'_>;

    /// Whether a work item is queued.
    fn others_wait(&self) -> bool;

    /// Whether there are other inodes to be written, in other lists than the queue.
    fn has_others(&self) -> bool;

    /// Milliseconds since a round was last served, or the device was last idle.
    fn served_ms_ago(&self) -> u64;

    /// How many pages the device may get, by [`Device::limit`].
    fn device_limit(&mut self) -> Result<i64, u32>;
}

/// What the round may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The flusher has no other work, or its work may wait: the round spares a slow device.
    Alone,
    /// Other work waits: a work item is next, the flusher is a rescuer, or works for `sync()`.
    Beside,
}

/// What else the flusher does when it checks for a kick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum During {
    /// Work for which no task waits, or waits only for a short time.
    OtherWork,
    /// Work for `sync()` or the like.
    Sync,
    /// The flusher is about to begin a work item, or is a rescuer.
    NextWork,
}

impl During {
    /// What a round may do now. None if no round may run. A round was last served `served_ms_ago`
    /// ago.
    #[inline]
    pub fn purpose(self, served_ms_ago: u64) -> Option<Purpose> {
        match self {
            Self::OtherWork => Some(Purpose::Alone),
            Self::Sync if served_ms_ago >= IN_SYNC_MS => Some(Purpose::Beside),
            Self::NextWork if served_ms_ago >= BETWEEN_MS => Some(Purpose::Beside),
            Self::Sync | Self::NextWork => None,
        }
    }
}

/// In how many milliseconds the flusher runs again if it is to run in `milliseconds`. A rescuer
/// skips a round that is due if another was just served ([`During::NextWork`]), and waits for that
/// interval.
pub fn again_in(milliseconds: u32, is_rescuer: bool, served_ms_ago: u64) -> u32 {
    if is_rescuer && milliseconds == 0 {
        return BETWEEN_MS.saturating_sub(served_ms_ago) as u32;
    }
    milliseconds
}

/// Whether other work takes inodes out of `b_dontcache`. Work for one super block, as for `sync()`,
/// takes its inodes. Work for all takes none if a round is requested and inodes are queued: the
/// round sets these aside, and the work asks again. Without this rule, the work would only ever
/// write the inode of a writer that is faster than the device.
pub fn work_takes_inodes(is_for_one_sb: bool, is_round_requested: bool, are_queued: bool) -> bool {
    is_for_one_sb || !is_round_requested || !are_queued
}

/// The result of [`queue`].
struct Queued {
    /// An inode is queued.
    some: bool,
    /// There may be more inodes.
    more: bool,
}

fn queue(lists: &mut impl Lists) -> Queued {
    let mut some = false;
    for _ in 0..INODES {
        match lists.next_is_ours(LOOKS) {
            None => return Queued { some, more: false },
            Some(true) => {
                lists.queue_next();
                some = true;
            }
            Some(false) => lists.leave_next(),
        }
    }
    Queued { some, more: true }
}

/// Writes `budget` pages of the inodes that have dirty dropbehind pages. The budget is the exact
/// count when the round begins, so that a writer that continues does not keep the round from
/// ending. The round ends after `quota` pages if there are other inodes.
///
/// A round without a budget only leaves inodes that have no dirty dropbehind folio.
pub fn round<F: Flusher>(flusher: &mut F, budget: i64, quota: i64, purpose: Purpose) -> Ended {
    let mut left = budget.max(0);
    let mut ended = Ended {
        pages: 0,
        again_ms: None,
        progress: false,
    };
    let mut fruitless = 0;
    let mut passes = 0;
    loop {
        let mut portion = F::PORTION;
        if left > 0 && purpose == Purpose::Alone {
            match flusher.device_limit() {
                Ok(pages) => portion = pages,
                // Other work may keep the device busy for longer than a page may wait.
                Err(_) if ended.pages == 0 && flusher.served_ms_ago() >= DELAY_MS.into() => {
                    if !flusher.has_others() {
                        portion = F::PORTION / 4;
                    }
                }
                Err(busy_ms) => {
                    ended.again_ms = Some(busy_ms);
                    ended.progress = true;
                    return ended;
                }
            }
        }
        let mut lists = flusher.lock_lists();
        lists.park();
        let queued = queue(&mut lists);
        let mut progress = queued.more;
        if queued.some {
            progress = left > 0;
            if progress {
                let pages = left.min(portion);
                let written = lists.write(pages, portion);
                ended.pages = ended.pages.saturating_add(written.pages);
                left = left.saturating_sub(written.pages);
                progress = written.progress;
                // If the portion is used up, an inode may have more dirty pages.
                passes += usize::from(written.all && !queued.more && written.pages < pages);
            }
        }
        lists.unqueue();
        drop(lists);

        fruitless = if progress { 0 } else { fruitless + 1 };
        let gives_way = ended.pages >= quota && flusher.has_others();
        if gives_way && progress && left > 0 {
            ended.again_ms = Some(0);
        }
        if left <= 0 && queued.some
            || !queued.some && !queued.more
            || passes >= PASSES
            || fruitless >= FRUITLESS
            || purpose == Purpose::Beside
            || flusher.others_wait()
            || gives_way
        {
            ended.progress = ended.pages > 0
                || queued.more && fruitless < FRUITLESS
                || purpose == Purpose::Beside && !queued.some;
            return ended;
        }
    }
}
