// SPDX-License-Identifier: GPL-2.0

//! Folios that leave the page cache after their writeback.
//!
//! A folio of one page whose writeback has ended, in any context, waits in the [`Ring`] of its CPU.
//! The first folio starts a worker after a delay, so that more folios gather. A ring that is half
//! or three quarters full starts it immediately. The worker locks the folios in order, and removes
//! successive ones of the same file together, because a single folio takes two locks to leave. For
//! a larger folio the locks matter less than the task switch, and the folio would keep more memory
//! while it waits: a task drops it immediately. If its writeback ends in atomic context, as with
//! btrfs, the worker starts immediately. A larger folio that is locked or in use waits like a page.
//!
//! A folio may change while it waits. It is dropped only if [`Seen::may_go`] is still true under
//! the lock of its page cache. Under the same lock a lookup clears dropbehind, and a writer makes a
//! dropbehind folio dirty. So a lookup before the drop keeps the folio, and a lookup after the drop
//! finds no folio.
//!
//! A folio that is locked or in use goes back to the ring for about 600 ms ([`is_old`]). So does
//! a folio that the next write would have to read back: the last folio of a file that is open for
//! writing ([`is_end`]), and a page of which one write has written a part and read the rest. Such a
//! page is marked `PG_referenced` until the second write finds it.
//!
//! A file system that has nothing to write ends the writeback of many locked folios in a row (ext4
//! with data=journal, after the commit). Its task cannot drop them, and fills the ring faster than
//! the worker empties it. When the ring is full, the task drops the first folio of the ring instead
//! ([`Ring::replace`]).
//!
//! No folio is forgotten in a ring. A context that puts a folio into a slot and a worker that looks
//! at the slot both change the slot atomically, so one of the two changes comes first. If the put
//! comes first, the worker finds the folio. Otherwise the context acquires what the worker has
//! released, and so reads how many folios the worker has taken: all of them. Therefore the context
//! starts the worker again.

use core::ops::Range;

/// A slot for one folio.
pub trait Slot {
    /// The folio.
    type Item;

    /// Puts a folio or nothing here, and returns what was here before. A full barrier, also if the
    /// slot was empty and stays empty.
    fn exchange(&self, item: Option<Self::Item>) -> Option<Self::Item>;

    /// Whether this folio is here now.
    fn has(&self, item: &Self::Item) -> bool;
}

/// A count of folios. Wraps. Unordered.
pub trait Count {
    /// The count.
    fn get(&self) -> usize;

    /// Sets the count. Only one context at a time does this.
    fn set(&self, count: usize);
}

/// What the caller has to do after a folio was put into a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Todo {
    /// Nothing: the worker will run.
    Nothing,
    /// Start the worker in [`WAIT_MS`].
    Soon,
    /// Start the worker now, even if it was to start later.
    Now,
}

/// How long a folio waits for more folios, and for another try, in milliseconds. No task waits for
/// these folios, and each start of the worker costs two task switches.
pub const WAIT_MS: u32 = 50;

/// How many folios of a file are removed together at most.
pub const MOST: usize = 31;

/// An interrupt ends a bio of at most so many pages, if the ring has `slots`. For more pages, a
/// worker that ends the bio and drops them at once saves more than its task switch costs.
pub const fn few(slots: usize) -> u32 {
    if slots < 128 {
        slots as u32 / 8
    } else {
        16
    }
}

/// The value of [`stamp`] for a folio that was not tried yet.
pub const NEW: usize = 0;

/// The time of the first try, in sixths of a second modulo 7, plus one: it is stored in the
/// unused bits of a pointer.
#[inline]
pub fn stamp(jiffies: usize, hz: usize) -> usize {
    1 + jiffies / (hz / 6).max(1) % 7
}

/// Whether a folio that was first tried at `since` is not tried again, because about 500 to 667 ms
/// have passed. With the waits for the worker, the folio leaves in less than a second if the worker
/// is not kept from running.
#[inline]
pub fn is_old(since: usize, now: usize) -> bool {
    since != NEW && (now + 7 - since) % 7 >= 4
}

/// Whether a folio with these bytes of a file contains the end of the file, at `size` bytes, and
/// has room for more.
#[inline]
pub fn is_end(bytes: &Range<i64>, size: i64) -> bool {
    // False for most folios.
    size < bytes.end && bytes.start < size
}

/// A ring in storage of the caller.
pub struct Ring<'a, S, C> {
    slots: &'a [S],
    nr_put: &'a C,
    nr_taken: &'a C,
}

impl<'a, S: Slot, C: Count> Ring<'a, S, C> {
    /// The number of `slots` must be a power of two, so that the counts may wrap.
    #[inline]
    pub fn new(slots: &'a [S], nr_put: &'a C, nr_taken: &'a C) -> Self {
        Self {
            slots,
            nr_put,
            nr_taken,
        }
    }

    #[inline]
    fn slot(&self, count: usize) -> Option<&'a S> {
        self.slots.get(count & self.slots.len().wrapping_sub(1))
    }

    /// How many folios wait.
    #[inline]
    pub fn waiting(&self) -> usize {
        self.nr_put.get().wrapping_sub(self.nr_taken.get())
    }

    /// Whether there is room for `nr` folios. The caller excludes other contexts that put folios
    /// here.
    #[inline]
    pub fn has_room(&self, nr: usize) -> bool {
        self.slots.len().saturating_sub(self.waiting()) >= nr
    }

    /// Whether there is room for the `nr` folios of a bio that is about to end. The caller's
    /// interrupt may have interrupted two contexts that have called this function for a bio and
    /// not yet put its folios here.
    #[inline]
    pub fn has_room_for_bio(&self, nr: usize) -> bool {
        self.has_room(nr + 2 * few(self.slots.len()) as usize)
    }

    /// Whether another folio may wait here for a write. Three eighths of the ring are for folios
    /// that come before the worker runs again.
    pub fn may_wait(&self) -> bool {
        self.has_room(self.slots.len() / 8 * 3)
    }

    /// Puts a folio behind the others. Gives it back if the ring is full.
    ///
    /// Only one context at a time does this.
    #[inline]
    pub fn put(&self, item: S::Item) -> Result<Todo, S::Item> {
        if self.has_room(1) {
            self.replace(item)
        } else {
            Err(item)
        }
    }

    /// Puts a folio into the ring even if the ring is full: then the folio takes the place of the
    /// first folio, which is returned.
    ///
    /// Only one context at a time does this or [`put`](Self::put).
    #[inline]
    pub fn replace(&self, item: S::Item) -> Result<Todo, S::Item> {
        let nr_put = self.nr_put.get();
        let Some(slot) = self.slot(nr_put) else {
            return Err(item);
        };
        // The slot after the last folio is empty: the worker empties a slot before it counts the
        // folio. In a full ring, this is the slot of the first folio.
        if let Some(first) = slot.exchange(Some(item)) {
            return Err(first);
        }
        self.nr_put.set(nr_put.wrapping_add(1));
        // Folios that the worker has taken meanwhile no longer count.
        let quarter = self.slots.len() / 4;
        Ok(match self.waiting() {
            1 => Todo::Soon,
            waiting if waiting == 2 * quarter || waiting == 3 * quarter => Todo::Now,
            _ => Todo::Nothing,
        })
    }

    /// Puts a folio back for another try, which is not urgent.
    ///
    /// Gives the folio back if it waits here already: the last folio of a log comes here after each
    /// write. Only this ring is searched: two workers that put the same folio back leave it in
    /// two rings, which costs a second try.
    pub fn put_back(&self, item: S::Item) -> Result<Todo, S::Item> {
        let first = self.nr_taken.get();
        let is_here = (0..self.waiting().min(self.slots.len()))
            .filter_map(|nr| self.slot(first.wrapping_add(nr)))
            .any(|slot| slot.has(&item));
        if is_here {
            return Err(item);
        }
        Ok(match self.put(item)? {
            Todo::Now => Todo::Soon,
            todo => todo,
        })
    }

    /// Takes the first folio.
    ///
    /// Only one context at a time does this.
    #[inline]
    pub fn take(&self) -> Option<S::Item> {
        let nr_taken = self.nr_taken.get();
        let item = self.slot(nr_taken)?.exchange(None)?;
        self.nr_taken.set(nr_taken.wrapping_add(1));
        Some(item)
    }
}

/// The state of a folio at one moment.
///
/// # Examples
///
/// ```
/// use kernel::writeback::dropbehind::Seen;
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
    /// after its writeback.
    #[inline]
    pub fn may_go(self) -> bool {
        self.dropbehind && !self.dirty && !self.writeback
    }
}

/// Moves the items for which `goes` returns false behind the other items. Calls `goes` once for
/// each item. Returns how many items are in front; these stay in order.
#[inline]
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
