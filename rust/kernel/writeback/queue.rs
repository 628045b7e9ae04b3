// SPDX-License-Identifier: GPL-2.0

//! What the interrupts of a CPU leave for a task to do.
//!
//! Interrupts put things in ([`put`](Queue::put)), and a work takes them out, in their order
//! ([`take`](Queue::take)). It is begun for what comes into an empty queue, in a while, so that
//! more comes meanwhile; and at once when the queue is half full.
//!
//! Nothing is forgotten. Of an interrupt that puts a thing into a place, and a work that looks
//! there, one comes first, for both change the place in one step. If it is the interrupt the work
//! finds the thing. Otherwise the interrupt finds the place as the work has left it, and with that
//! how many were taken before: all, so that it begins the work anew.

/// A place for one thing.
pub trait Slot {
    /// The thing.
    type Item;

    /// Puts a thing here. Gives it back if there is one already. Acquires what whoever has taken
    /// one before has released, and releases.
    fn put(&self, item: Self::Item) -> Result<(), Self::Item>;

    /// Takes the thing. Acquires and releases, also where there is none: it is not enough to read.
    fn take(&self) -> Option<Self::Item>;
}

/// How many things there have been. Wraps. Unordered.
pub trait Count {
    /// So many.
    fn get(&self) -> usize;

    /// It is so many now. One context at a time does this.
    fn set(&self, count: usize);
}

/// What has to be done when a thing was put into a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Todo {
    /// Nothing: the work comes.
    Nothing,
    /// Begin the work in [`SOON_MS`].
    Soon,
    /// Begin the work now, whatever was to be.
    Now,
}

/// For how long things wait for others, in milliseconds. Nobody waits for them, and each time that
/// the work begins costs two task switches.
pub const SOON_MS: u32 = 50;

/// How many folios of a bio are ended in an interrupt, and left to a task to be dropped. One that
/// ends more of them itself is worth its way.
pub const FEW: u32 = 16;

/// How many bytes each of these has at most, where a page has `page_size`: what waits keeps its
/// memory.
pub const fn small(page_size: usize) -> usize {
    if page_size > 16 << 10 {
        page_size
    } else {
        16 << 10
    }
}

/// A queue in somebody's storage.
pub struct Queue<'a, S, C> {
    slots: &'a [S],
    nr_put: &'a C,
    nr_taken: &'a C,
}

impl<'a, S: Slot, C: Count> Queue<'a, S, C> {
    /// The number of `slots` is a power of two, so that the counts may wrap.
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

    #[inline(always)]
    fn waiting(&self) -> usize {
        self.nr_put.get().wrapping_sub(self.nr_taken.get())
    }

    /// Whether there are places for so many: for whoever keeps others from putting things here.
    #[inline(always)]
    pub fn has_room(&self, nr: usize) -> bool {
        self.waiting().saturating_add(nr) <= self.slots.len()
    }

    /// Puts a thing behind the others. Gives it back if there is no place.
    ///
    /// One context at a time does this.
    #[inline(always)]
    pub fn put(&self, item: S::Item) -> Result<Todo, S::Item> {
        let nr_put = self.nr_put.get();
        let Some(slot) = self.slot(nr_put) else {
            return Err(item);
        };
        slot.put(item)?;
        self.nr_put.set(nr_put.wrapping_add(1));
        Ok(match self.waiting() {
            1 => Todo::Soon,
            waiting if waiting == self.slots.len() / 2 => Todo::Now,
            _ => Todo::Nothing,
        })
    }

    /// Takes the first thing.
    ///
    /// One context at a time does this.
    #[inline(always)]
    pub fn take(&self) -> Option<S::Item> {
        let nr_taken = self.nr_taken.get();
        let item = self.slot(nr_taken)?.take()?;
        self.nr_taken.set(nr_taken.wrapping_add(1));
        Some(item)
    }
}
