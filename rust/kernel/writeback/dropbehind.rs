// SPDX-License-Identifier: GPL-2.0

//! Folios that leave the page cache after their writeback.
//!
//! A folio of one page whose writeback has ended, in any context, waits in the [`Ring`] of its CPU.
//! The first folio starts a worker after a delay, so that more folios gather, and a ring that is
//! half or three quarters full starts it immediately. The worker locks the folios in order, and
//! removes those that are neighbours in a file together ([`Neighbours`]), because a single folio
//! takes two locks to leave. For a larger folio the locks matter less than the task switch, and it
//! would keep more memory: a task drops it at once. It only waits if it is in use, or if no task
//! ends its writeback.
//!
//! A folio may change while it waits. It is dropped if it still [`may`](Seen::may_go) when the lock
//! of its page cache is held. Under that lock a lookup clears dropbehind, and a writer makes a
//! dropbehind folio dirty: a lookup before keeps the folio, and a lookup after finds nothing.
//!
//! A folio that is locked or in use goes back to the ring for about a second ([`is_old`]). So
//! does the last folio of a file that is open for writing ([`is_end`]), because a writer that
//! appends to the file would have to read it back.
//!
//! No folio is forgotten. When a context puts a folio into a slot and the worker looks there, one
//! comes first, because both change the slot atomically. If the context is first, the worker finds
//! the folio. Otherwise the context sees the slot as the worker left it, and so how many folios
//! were taken: all, so that it starts the worker again.

use core::ops::Range;

/// A slot for one folio.
pub trait Slot {
    /// The folio.
    type Item;

    /// Puts a folio here. Gives it back if the slot is taken. Acquires what the context that took
    /// the previous folio has released, and releases.
    fn put(&self, item: Self::Item) -> Result<(), Self::Item>;

    /// Takes the folio. Acquires and releases, even if there is none: a plain read is not enough.
    fn take(&self) -> Option<Self::Item>;

    /// Whether this folio is here now.
    fn has(&self, item: &Self::Item) -> bool;

    /// Whether a folio that was put back is here now.
    fn is_retry(&self) -> bool;
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

/// For how long folios wait for more, and for another try, in milliseconds. No task waits for them,
/// and each start of the worker costs two task switches.
pub const WAIT_MS: u32 = 50;

/// How many folios are removed together at most.
pub const MOST: usize = 31;

/// The largest gap between the end of a folio and the next folio: the walk passes as many entries
/// while it holds the lock.
pub const GAP: i64 = 16 << 12;

/// The most pages of a bio that its interrupt ends. For more a task switch pays off.
pub const FEW: u32 = 16;

/// The value of [`stamp`] for a folio that was not tried yet.
pub const NEW: usize = 0;

/// The time of the first try, in quarters of a second modulo 7, plus one: it is stored in the
/// unused bits of a pointer.
#[inline(always)]
pub fn stamp(jiffies: usize, hz: usize) -> usize {
    1 + jiffies / (hz / 4).max(1) % 7
}

/// Whether a folio that was first tried at `since` is not tried again, because about a second has
/// passed.
#[inline(always)]
pub fn is_old(since: usize, now: usize) -> bool {
    since != NEW && (now + 7 - since) % 7 >= 4
}

/// Whether a folio with these bytes of a file contains the end of the file, at `size` bytes, and
/// has room for more.
#[inline(always)]
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
    #[inline(always)]
    pub fn new(slots: &'a [S], nr_put: &'a C, nr_taken: &'a C) -> Self {
        Self {
            slots,
            nr_put,
            nr_taken,
        }
    }

    #[inline(always)]
    fn slot(&self, count: usize) -> Option<&'a S> {
        self.slots.get(count & self.slots.len().wrapping_sub(1))
    }

    /// How many folios wait.
    #[inline(always)]
    pub fn waiting(&self) -> usize {
        self.nr_put.get().wrapping_sub(self.nr_taken.get())
    }

    /// Whether there is room for `nr` folios. The caller excludes other contexts that put folios
    /// here.
    #[inline(always)]
    pub fn has_room(&self, nr: usize) -> bool {
        self.slots.len().saturating_sub(self.waiting()) >= nr
    }

    /// Puts a folio behind the others. Gives it back if the ring is full.
    ///
    /// Only one context at a time does this.
    #[inline(always)]
    pub fn put(&self, item: S::Item) -> Result<Todo, S::Item> {
        let nr_put = self.nr_put.get();
        let slot = match self.slot(nr_put) {
            Some(slot) if self.waiting() < self.slots.len() => slot,
            _ => return Err(item),
        };
        slot.put(item)?;
        self.nr_put.set(nr_put.wrapping_add(1));
        // Folios that the worker has taken meanwhile no longer count.
        Ok(match self.waiting() {
            1 => Todo::Soon,
            // Three quarters: retries may take half of the ring.
            waiting if waiting == self.slots.len() / 2 || waiting == self.slots.len() / 4 * 3 => {
                Todo::Now
            }
            _ => Todo::Nothing,
        })
    }

    /// Puts a folio back for another try. Returns whether the worker is to run in [`WAIT_MS`].
    ///
    /// Gives the folio back if half of the ring is for retries already, because new folios need the
    /// other half: while ext4 commits data to its journal, more folios than a ring holds cannot be
    /// dropped.
    ///
    /// Also gives the folio back if it waits here already: the last folio of a log comes here after
    /// each write. If another worker takes that folio concurrently and puts it back, one of them
    /// does not find it in the other's ring.
    pub fn put_back(&self, item: S::Item) -> Result<bool, S::Item> {
        let first = self.nr_taken.get();
        let mut retries = 0;
        for nr in 0..self.waiting().min(self.slots.len()) {
            let slot = self.slot(first.wrapping_add(nr));
            if slot.is_some_and(|slot| slot.has(&item)) {
                return Err(item);
            }
            retries += usize::from(slot.is_some_and(S::is_retry));
        }
        if retries >= self.slots.len() / 2 {
            return Err(item);
        }
        Ok(self.put(item)? != Todo::Nothing)
    }

    /// Takes the first folio.
    ///
    /// Only one context at a time does this.
    #[inline(always)]
    pub fn take(&self) -> Option<S::Item> {
        let nr_taken = self.nr_taken.get();
        let item = self.slot(nr_taken)?.take()?;
        self.nr_taken.set(nr_taken.wrapping_add(1));
        Some(item)
    }
}

/// What folios that are removed together have in common: their page cache, and that each begins at
/// the end of the previous folio or a little later. C walks from the first to the last.
#[derive(Clone, Copy, Debug, Default)]
pub struct Neighbours {
    mapping: usize,
    end: i64,
}

impl Neighbours {
    /// Adds a folio of the page cache `mapping` that has `bytes` of its file. Returns false if the
    /// folio is no neighbour: the `nr` folios before it must be removed first.
    #[inline(always)]
    pub fn add(&mut self, nr: usize, mapping: usize, bytes: Range<i64>) -> bool {
        let gap = bytes.start.wrapping_sub(self.end);
        let goes_on = nr < MOST && mapping == self.mapping && (0..=GAP).contains(&gap);
        *self = Self {
            mapping,
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
