// SPDX-License-Identifier: GPL-2.0

//! The flusher's round: what is written for a kick, and what follows.
//!
//! A wb keeps its inodes that have dirty dropbehind pages in a queue of their own (`b_dontcache`).
//! What comes to it goes to its end; a round takes from its front, so that no inode that is dirtied
//! all the time keeps another one waiting. A round
//!
//! - costs what it writes: it looks at inodes of the queue only, and at few pages of each;
//! - writes in portions, and ends after one if somebody else waits for the flusher;
//! - writes whole requests of the device of an inode that has one: what remains waits for a little
//!   longer;
//! - leaves a device alone that has enough to do with small writes;
//! - leaves alone what others have queued, and, beside work for `sync()`, what that has to write:
//!   an inode whose time changes before the sync has come to it would be missed;
//! - holds the lock of the lists for [`INODES`] inodes and [`LOOKS`] pages of each at a time.
//!
//! What it leaves is tried again: soon, or at leisure if nothing of it could be written.
//!
//! Times are in milliseconds, pages are those of the page cache.

use super::pace::Room;

/// Pages of `1 << page_shift` bytes that are written before a round looks who waits. C adds 4 MiB
/// to what is to be written of an inode, and rounds down to a multiple: one more page would make
/// these twice as many.
pub const fn portion(page_shift: u32) -> i64 {
    ((4 << 20) >> page_shift) - 1
}

/// Inodes that are queued while the lists are locked. With as many looks at each as there may be,
/// the lock is held for less than 100,000 instructions: `make micro` has the figure.
pub const INODES: usize = 16;

/// Dirty folios of an inode that are looked at in search of one that is dropbehind. With more than
/// these, the inode is believed to have one.
pub const LOOKS: usize = 24;

/// How often all inodes of the queue, if they are no more than [`INODES`], are written to their end
/// in a round that is not done before. C writes from a place in the file to its end, and begins at
/// the front when it comes again; what there is then has come meanwhile, or cannot be written.
pub const PASSES: usize = 2;

/// Times in a row that nothing of what was queued could be written, before a round rests.
pub const FRUITLESS: usize = 32;

/// How long what a round has left waits where none of it could be written, as after a shutdown of
/// the file system. It waits for the wb's delay otherwise.
pub const STUCK_MS: u32 = 1000;

/// How long a page waits besides, of which there was no whole request when the time of those before
/// it was up.
pub const REST_MS: u32 = 40;

/// For how long no other kick is served within work for `sync()`, for which somebody waits.
pub const IN_SYNC_MS: u64 = 700;

/// The same where a work is next: it waits for the portion that it has met, and for no other.
pub const BETWEEN_MS: u64 = 100;

/// What an inode of the queue has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Has {
    /// No dirty dropbehind folio.
    Nothing,
    /// So many dirty folios that one of them may be dropbehind.
    Maybe,
    /// A dirty dropbehind folio.
    Dropbehind,
}

/// The next inode of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It is this round's, and has this.
    Ours(Has),
    /// The sync beside which this round runs is to write it.
    OfSync,
}

/// What [`Lists::write`] has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Pages that were written.
    pub pages: i64,
    /// Pages that were left on purpose: see [`Chunk`].
    pub kept: i64,
    /// Whether anything was done, if only that an inode was found to be clean.
    pub progress: bool,
    /// Whether all that was queued had its turn.
    pub all: bool,
}

/// What is written at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Portion {
    /// How many pages; those that are kept count as if they were written. What is begun of an inode
    /// may be more.
    pub pages: i64,
    /// Of no inode more is written than this. [`i64::MAX`] if C may have its way.
    pub most: i64,
    /// Of an inode that has a whole request, only such are written, and the rest is kept.
    pub whole: bool,
}

/// What has become of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Pages that were written.
    pub pages: i64,
    /// Pages that were left on purpose: see [`Chunk`].
    pub kept: i64,
    /// In how many milliseconds there is to be another one for what was left on purpose.
    pub again_ms: Option<u32>,
    /// Whether anything was written, or the next one may write what this one has not come to, or
    /// has left to others.
    pub progress: bool,
}

impl Ended {
    /// Whether it has left the device alone for all of its time, for it had enough to do.
    pub fn has_spared_the_device(self) -> bool {
        self.pages == 0 && self.again_ms.is_some()
    }

    /// The same of a round that was to write `budget` of `counted` pages, for others have their
    /// turn: there is to be another one at once.
    #[must_use]
    pub fn of_turn(self, budget: i64, counted: i64) -> Self {
        let has_more = self.pages > 0 && budget < counted;
        Self {
            again_ms: if has_more { Some(0) } else { self.again_ms },
            ..self
        }
    }
}

/// How many pages a round may write beside other work before that has its turn again: as many as
/// were written since the last round ended, and a portion at least.
pub fn turn(written: i64, portion: i64) -> i64 {
    written.max(portion)
}

/// The lists of a wb, locked.
pub trait Lists {
    /// Sets aside what other work has queued. It keeps its order.
    fn park(&mut self);

    /// Looks at the next inode, and at `looks` of its dirty folios at most. None if there is none.
    fn next(&mut self, looks: usize) -> Option<Next>;

    /// Queues the next inode for [`Self::write`]: behind those queued before, and `sure` ones in
    /// front of the others.
    fn queue_next(&mut self, sure: bool);

    /// Puts the next inode, which has nothing, among the ordinary dirty ones of its time.
    fn release_next(&mut self);

    /// Leaves the next inode to the sync, which has to write it.
    fn hand_over_next(&mut self);

    /// Writes what is queued, and unlocks the lists meanwhile. What is still dirty afterwards is at
    /// the end of the list where it belongs.
    fn write(&mut self, portion: Portion) -> Written;

    /// Puts what is queued and was not reached back to the front, in its order, and counts the
    /// inodes that wait now.
    fn unqueue(&mut self);
}

/// The flusher of a wb.
pub trait Flusher {
    /// What [`portion`] says of the pages that there are.
    const PORTION: i64;

    /// Its lists, while they are locked.
    type Lists<'a>: Lists
    where
        Self: 'a;

    /// Locks the lists.
    fn lock_lists(&mut self) -> Self::Lists<'_>;

    /// Whether somebody has queued work.
    fn others_wait(&self) -> bool;

    /// What may be given to the device: a portion, or less. `first` is for a round that has written
    /// nothing: if none has for as long as a page may wait, there is room, whatever others write.
    fn room(&mut self, first: bool) -> Room;
}

/// What a round is for, by what it may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The flusher has nothing else to do, or what it does may wait.
    Alone,
    /// The same, and the writers let pages gather: it goes as the device does.
    Paced {
        /// In how many milliseconds there is to be another round for what makes up no whole request
        /// of an inode that has one. Zero if all is to be written.
        rest_ms: u32,
    },
    /// Others wait already: a work is next, the flusher is a rescuer, or works for `sync()`.
    Beside,
}

/// What else the flusher does when it is asked whether a kick is to be served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum During {
    /// Work that nobody waits for, or for little.
    OtherWork,
    /// Work for `sync()` or its like.
    Sync,
    /// It is about to begin a work, or is a rescuer.
    NextWork,
}

impl Purpose {
    /// The same for writers that let pages gather.
    pub fn paced(self, rest_ms: u32) -> Self {
        match self {
            Self::Alone => Self::Paced { rest_ms },
            Self::Paced { .. } | Self::Beside => self,
        }
    }
}

impl During {
    /// What a round may do now, if there is to be one. The last one has ended `rested_ms` ago.
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

/// How much of an inode is written at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Pages that are written at most.
    pub pages: i64,
    /// Pages that are left until others have come to them.
    pub rest: i64,
}

/// How much is written of an inode that has `dirty` pages: `most`; or, if there is a request of
/// `request` pages, and all of them would leave less than one behind, whole requests.
///
/// No more of the dirty pages need be counted than `most` and a request.
pub fn chunk(most: i64, dirty: i64, request: i64) -> Chunk {
    let at_once = dirty.min(most);
    if 0 < request && request <= at_once {
        let pages = at_once - at_once % request;
        let rest = dirty.saturating_sub(pages);
        if (1..request).contains(&rest) {
            return Chunk { pages, rest };
        }
    }
    Chunk {
        pages: most,
        rest: 0,
    }
}

/// How many of the `rest` pages behind a chunk were kept, of which `unwritten` were not written.
/// None unless all of it was; less where a folio went beyond it.
pub fn kept(rest: i64, unwritten: i64) -> i64 {
    if unwritten > 0 {
        0
    } else {
        rest.saturating_add(unwritten).max(0)
    }
}

/// What [`queue`] has found.
struct Queued {
    /// Something is to be written.
    some: bool,
    /// There may be more than was looked at.
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

/// Writes `budget` pages of the inodes that have dirty dropbehind pages: the exact count when the
/// round begins, so that a writer who goes on does not keep the flusher.
///
/// With a budget of nothing it only releases inodes that have nothing to be written.
pub fn round<F: Flusher>(flusher: &mut F, budget: i64, purpose: Purpose) -> Ended {
    let mut left = budget.max(0);
    let mut ended = Ended {
        pages: 0,
        kept: 0,
        again_ms: None,
        progress: false,
    };
    let mut fruitless = 0;
    let mut passes = 0;
    let rest_ms = match purpose {
        Purpose::Paced { rest_ms } => rest_ms,
        Purpose::Alone | Purpose::Beside => 0,
    };
    loop {
        let mut portion = F::PORTION;
        if left > 0 && matches!(purpose, Purpose::Paced { .. }) {
            match flusher.room(ended.pages == 0) {
                Room::Pages(pages) => portion = pages,
                Room::Busy(milliseconds) => {
                    ended.again_ms = Some(milliseconds);
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
                let written = lists.write(Portion {
                    pages,
                    most: if portion < F::PORTION {
                        portion
                    } else {
                        i64::MAX
                    },
                    whole: rest_ms > 0,
                });
                let done = written.pages.saturating_add(written.kept);
                ended.pages = ended.pages.saturating_add(written.pages);
                ended.kept = ended.kept.saturating_add(written.kept);
                left = left.saturating_sub(done);
                if written.kept > 0 {
                    ended.again_ms = Some(rest_ms);
                }
                progress = written.progress;
                // Where the portion is used up an inode may have more.
                passes += usize::from(written.all && !queued.more && done < pages);
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
