// SPDX-License-Identifier: GPL-2.0

//! Folios that leave the page cache in one batch.
//!
//! A single folio takes two locks to leave, and more to be freed. So a task that ends the folios of
//! one bio, or drops [`MOST`] that interrupts have left, locks and gathers the folios to be
//! dropped. It drops the batch when there are [`MOST`], when the next folio does not follow the
//! last ([`Row`]), and at the latest at the end of the bio or of these folios. A waiter for a lock
//! waits no longer than that.
//!
//! A folio may change while it waits. It is dropped if it still [`may`](Seen::may_go) when the lock
//! of its page cache is held. Under that lock a lookup clears dropbehind, and a writer makes a
//! dropbehind folio dirty: a lookup before keeps the folio, and a lookup after finds nothing.

use core::ops::Range;

/// How many folios are gathered at most.
pub const MOST: usize = 31;

/// The largest gap between the end of a folio and the next folio: the walk passes as many entries
/// while it holds the lock.
pub const GAP: i64 = 16 << 12;

/// The largest size of a gathered folio. To free a larger folio costs much more than the locks, and
/// C's function that frees several takes longer for each page.
pub const LARGE: usize = 16 << 12;

/// Whether the folios of a bio are to be gathered. Its first folio has `size` bytes; its
/// `nr_pieces` pieces of memory begin with one of `bytes`. A single folio, which has only one piece
/// of the bio, is not gathered.
#[inline(always)]
pub fn is_worth_it(size: usize, nr_pieces: usize, bytes: usize) -> bool {
    size <= LARGE && (nr_pieces > 1 || bytes > size)
}

/// What gathered folios have in common: their page cache, and that each begins at the end of the
/// previous folio or a little later. C walks from the first to the last.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Row {
    cache: usize,
    end: i64,
}

impl Row {
    /// Adds a folio of the page cache `cache` that has `bytes` of its file. Returns false if the
    /// folio begins another row: the `nr` folios of this row must be dropped first.
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

/// The state of a folio at one moment.
///
/// # Examples
///
/// ```
/// use kernel::writeback::together::Seen;
///
/// let clean = Seen { dropbehind: true, dirty: false, writeback: false };
/// assert!(clean.may_go());
/// // A writer has made it dirty again while it waited.
/// assert!(!Seen { dirty: true, ..clean }.may_go());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The folio leaves the page cache once it is clean (`PG_dropbehind`).
    pub dropbehind: bool,
    /// The folio has data that its device does not have (`PG_dirty`).
    pub dirty: bool,
    /// The folio is under writeback (`PG_writeback`).
    pub writeback: bool,
}

impl Seen {
    /// Whether the folio is to be dropped now. A folio that is dirty or under writeback is dropped
    /// at the end of that.
    #[inline(always)]
    pub fn may_go(self) -> bool {
        self.dropbehind && !self.dirty && !self.writeback
    }
}

/// Moves the items for which `goes` returns false behind the others, with one call for each.
/// Returns how many are in front; these stay in order.
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
