// SPDX-License-Identifier: GPL-2.0

//! The flusher's round: it writes dirty dropbehind pages after a kick.
//!
//! A wb keeps the inodes that have dirty dropbehind pages in a separate queue (`b_dontcache`). New
//! inodes go to its end, a round takes inodes from its front. So an inode that is dirtied all the
//! time does not block another inode. A round
//!
//! - costs what it writes: it looks only at inodes of the queue, and at few pages of each;
//! - writes in portions, and ends after one portion if a work item is queued;
//! - gives a slow device no more than the device writes in [`QUEUED_MS`] ([`Device::room`]);
//! - skips what other work has queued. Beside work for `sync()` it also skips the inodes of the
//!   sync: the sync would miss an inode whose dirtied time changes before the sync reaches it;
//! - holds the lock of the lists for at most [`INODES`] inodes and [`LOOKS`] pages of each.
//!
//! The flusher retries after the delay what a round leaves.
//!
//! Times are in milliseconds, pages are those of the page cache.

/// Pages of `1 << page_shift` bytes that a round writes before it checks for queued work. A power
/// of two, as the extents that file systems allocate.
pub const fn portion(page_shift: u32) -> i64 {
    (4 << 20) >> page_shift
}

/// Inodes that are queued under one hold of the lists' lock. With [`LOOKS`] at each inode, the lock
/// is held for less than 100,000 instructions (measured by `make micro`).
pub const INODES: usize = 16;

/// Dirty folios of an inode that are searched for a dropbehind folio. An inode with more dirty
/// folios is assumed to have one.
pub const LOOKS: usize = 24;

/// How often a round writes all inodes of the queue to their end, if they are no more than
/// [`INODES`]. C writes from a place in the file to its end, and begins at the front the next time.
/// What is dirty there after that is new, or cannot be written.
pub const PASSES: usize = 2;

/// Consecutive passes that could write nothing of the queued inodes, before a round ends.
pub const FRUITLESS: usize = 32;

/// Minimum time between rounds within work for `sync()`, because a task waits for that work.
pub const IN_SYNC_MS: u64 = 700;

/// Minimum time between rounds in front of a work item. So a work item waits for at most one
/// portion.
pub const BETWEEN_MS: u64 = 100;

/// The result of a look at an inode of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Has {
    /// The inode has no dirty dropbehind folio.
    Nothing,
    /// The inode has so many dirty folios that one of them may be dropbehind.
    Maybe,
    /// The inode has a dirty dropbehind folio.
    Dropbehind,
}

/// The next inode of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// This round writes the inode, unless that has nothing.
    Ours(Has),
    /// The sync beside which this round runs writes the inode.
    OfSync,
}

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
    /// Delay until the next round, if the device has enough until then or other work has its turn.
    pub again_ms: Option<u32>,
    /// Whether anything was written, or the next round may write what this round has not reached,
    /// or has left to other work.
    pub progress: bool,
}

impl Ended {
    /// Whether the round wrote nothing because the device had enough.
    pub fn has_spared_the_device(self) -> bool {
        self.pages == 0 && self.again_ms.is_some()
    }

    /// The result of a round that was limited to `budget` of `counted` pages, because other work
    /// has its turn. If pages remain, the next round follows immediately.
    #[must_use]
    pub fn of_turn(self, budget: i64, counted: i64) -> Self {
        let has_more = self.pages > 0 && budget < counted;
        Self {
            again_ms: if has_more { Some(0) } else { self.again_ms },
            ..self
        }
    }
}

/// How many pages a round may write before other work has its turn: as many as were written since
/// the last round ended, and at least a portion.
pub fn turn(written: i64, portion: i64) -> i64 {
    written.max(portion)
}

/// What the flusher keeps in flight on a slow device, in milliseconds: pages in memory may still
/// get neighbours, and pages in the queue of a device do not.
pub const QUEUED_MS: i64 = 40;

/// A device that has less to do is about to be idle, in KiB.
const IDLE: i64 = 128;

/// A device that writes as much in a millisecond is not slow, in KiB.
const FAST: i64 = 32;

/// What the device of a wb has done for it since the last round, and has still to do, in KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Device {
    /// What was written.
    pub written: i64,
    /// What is under writeback.
    pub under_way: i64,
    /// Milliseconds since the last round.
    pub elapsed_ms: i64,
}

impl Device {
    /// Whether the device is about to have nothing to do, so that its speed is unknown.
    pub fn is_idle(self) -> bool {
        self.under_way <= IDLE
    }

    /// How much the device may get, in KiB, if it is slow. None if it may get a portion. Returns
    /// for how many milliseconds it has enough otherwise.
    pub fn room(self) -> Result<Option<i64>, u32> {
        let fast = self.elapsed_ms.saturating_mul(FAST);
        // Where the flusher has the only CPU, nothing completes.
        let is_unknown = self.is_idle() || self.elapsed_ms < 5 || self.written <= 0;
        if is_unknown || self.written >= fast {
            return Ok(None);
        }
        let queued = self.written.saturating_mul(QUEUED_MS) / self.elapsed_ms;
        if self.under_way <= queued {
            return Ok(Some(queued));
        }
        // The flusher comes back early, because it may take as long to run.
        let busy_ms = self.under_way.saturating_mul(QUEUED_MS) / queued.max(1);
        Err(busy_ms.saturating_sub(QUEUED_MS / 2).min(50) as u32)
    }
}

/// The lists of a wb, locked.
pub trait Lists {
    /// Sets aside what other work has queued, in its order.
    fn park(&mut self);

    /// Looks at the next inode, and at no more than `looks` of its dirty folios. None if there is
    /// none.
    fn next(&mut self, looks: usize) -> Option<Next>;

    /// Queues the next inode for [`Self::write`], behind inodes queued before. `sure` inodes go in
    /// front of the others.
    fn queue_next(&mut self, sure: bool);

    /// Puts the next inode, which has no dirty dropbehind folio, among the ordinary dirty inodes,
    /// by its time.
    fn release_next(&mut self);

    /// Leaves the next inode to the sync, which has to write it.
    fn hand_over_next(&mut self);

    /// Writes `pages` pages of what is queued, and no more than `portion` of an inode at a time. C
    /// may exceed the number, to finish what it has begun of an inode. The lists are unlocked
    /// meanwhile. An inode that is still dirty afterwards is at the end of the list where it
    /// belongs.
    fn write(&mut self, pages: i64, portion: i64) -> Written;

    /// Puts queued inodes that were not reached back to the front, in their order.
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

    /// How many pages the device may get, by [`Device::room`]. The `first` portion of a round does
    /// not wait for a busy device if no round was served for as long as a page may wait.
    fn room(&mut self, first: bool) -> Result<i64, u32>;
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
    /// Work for which no task waits, or only a short time.
    OtherWork,
    /// Work for `sync()` or the like.
    Sync,
    /// The flusher is about to begin a work item, or is a rescuer.
    NextWork,
}

impl During {
    /// What a round may do now, or None if no round may run. The last round ended `rested_ms` ago.
    #[inline(always)]
    pub fn purpose(self, rested_ms: u64) -> Option<Purpose> {
        match self {
            Self::OtherWork => Some(Purpose::Alone),
            Self::Sync if rested_ms >= IN_SYNC_MS => Some(Purpose::Beside),
            Self::NextWork if rested_ms >= BETWEEN_MS => Some(Purpose::Beside),
            Self::Sync | Self::NextWork => None,
        }
    }
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
        match lists.next(LOOKS) {
            None => return Queued { some, more: false },
            Some(Next::Ours(Has::Nothing)) => lists.release_next(),
            Some(Next::Ours(has)) => {
                lists.queue_next(has == Has::Dropbehind);
                some = true;
            }
            Some(Next::OfSync) => lists.hand_over_next(),
        }
    }
    Queued { some, more: true }
}

/// Writes `budget` pages of the inodes that have dirty dropbehind pages. The budget is the exact
/// count when the round begins, so that a writer that continues does not keep the flusher.
///
/// A round without a budget only releases inodes that have no dirty dropbehind folio.
pub fn round<F: Flusher>(flusher: &mut F, budget: i64, purpose: Purpose) -> Ended {
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
            match flusher.room(ended.pages == 0) {
                Ok(pages) => portion = pages,
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
                // If the portion is used up, an inode may have more.
                passes += usize::from(written.all && !queued.more && written.pages < pages);
            }
        }
        lists.unqueue();
        drop(lists);

        fruitless = if progress { 0 } else { fruitless + 1 };
        if left <= 0 && queued.some
            || !queued.some && !queued.more
            || passes >= PASSES
            || fruitless >= FRUITLESS
            || purpose == Purpose::Beside
            || flusher.others_wait()
        {
            ended.progress = ended.pages > 0
                || queued.more && fruitless < FRUITLESS
                || purpose == Purpose::Beside && !queued.some;
            return ended;
        }
    }
}
