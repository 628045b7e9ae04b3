// SPDX-License-Identifier: GPL-2.0

//! Folios that leave the page cache together.
//!
//! Alone, each takes two locks to leave it, and others to be freed. So a task that ends the folios
//! of one bio, or takes [`MOST`] that interrupts have left to it, gathers those that are to be
//! dropped, locked, and drops them at once: as soon as there are [`MOST`], as the next one does not
//! go on where the last one ended ([`Row`]), and at the end of the bio, or of so many, at the
//! latest. Nobody waits for a lock for longer than that takes.
//!
//! Much may happen to a folio while it waits. It goes if it still [`may`](Seen::may_go) when the
//! lock of its page cache is held, under which lookups take dropbehind from a folio, and whoever
//! makes it dirty does that: who finds it before keeps it, who looks for it after finds nothing.

use core::ops::Range;

/// How many folios are gathered.
pub const MOST: usize = 31;

/// By how much a folio may begin behind the end of the last one: as many entries are passed while
/// the lock is held.
pub const GAP: i64 = 16 << 12;

/// How large a folio is at most that is gathered. The locks are little beside what it takes to free
/// a larger one, and C's function that frees several takes longer for each page.
pub const LARGE: usize = 16 << 12;

/// Whether the folios of a bio are to be gathered, of which the first has `size` bytes, and whose
/// `nr_pieces` pieces of memory begin with one of `bytes`. A folio that is alone is not: one piece
/// is all that it has of the bio.
#[inline(always)]
pub fn is_worth_it(size: usize, nr_pieces: usize, bytes: usize) -> bool {
    size <= LARGE && (nr_pieces > 1 || bytes > size)
}

/// What the folios that are gathered have in common: their page cache, and that each begins where
/// the one before has ended, or a little later. C walks from the first to the last.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Row {
    cache: usize,
    end: i64,
}

impl Row {
    /// Adds a folio of the page cache `cache` that has `bytes` of its file. Returns false if it has
    /// to begin another row, and the `nr` folios of this one must be dropped first.
    #[inline(always)]
    pub fn add(&mut self, nr: usize, cache: usize, bytes: Range<i64>) -> bool {
        let gap = bytes.start.wrapping_sub(self.end);
        let goes_on = nr < MOST && cache == self.cache && (0..=GAP).contains(&gap);
        *self = Self {
            cache,
            end: bytes.end,
        };
        nr == 0 || goes_on
    }
}

/// What is seen of a folio at one moment.
///
/// # Examples
///
/// ```
/// use kernel::writeback::together::Seen;
///
/// let clean = Seen { dropbehind: true, dirty: false, writeback: false };
/// assert!(clean.may_go());
/// // Somebody has written to it again while it waited for others.
/// assert!(!Seen { dirty: true, ..clean }.may_go());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// It is to leave the page cache once it is clean (`PG_dropbehind`).
    pub dropbehind: bool,
    /// It has data that its device does not have (`PG_dirty`).
    pub dirty: bool,
    /// It is on its way to its device (`PG_writeback`).
    pub writeback: bool,
}

impl Seen {
    /// Whether it is to be dropped now. One that is dirty or under writeback is dropped at the end
    /// of that.
    #[inline(always)]
    pub fn may_go(self) -> bool {
        self.dropbehind && !self.dirty && !self.writeback
    }
}

/// Moves the items of which `goes` says no behind the others, asking once for each. Returns how
/// many are in front, which stay in order.
#[inline(always)]
pub fn to_front<T>(items: &mut [T], mut goes: impl FnMut(&mut T) -> bool) -> usize {
    let mut front = 0;
    let mut left = items.len();
    while let Some(item) = items.get_mut(..left).and_then(|rest| rest.get_mut(front)) {
        if goes(item) {
            front = front.saturating_add(1);
        } else {
            move_to_end(items, front, left);
            left = left.saturating_sub(1);
        }
    }
    front
}

#[cold]
fn move_to_end<T>(items: &mut [T], from: usize, end: usize) {
    if let Some(rest) = items.get_mut(from..end) {
        rest.rotate_left(1);
    }
}
