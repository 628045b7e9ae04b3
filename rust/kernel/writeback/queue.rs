// SPDX-License-Identifier: GPL-2.0

//! What the interrupts of a CPU leave for a task to do.
//!
//! Interrupts put things in ([`put`](Queue::put)), and a work takes them out, in their order
//! ([`take`](Queue::take)). It is begun for what comes into an empty queue, in a while, so that
//! more comes meanwhile; and at once when the queue is half full.
//!
//! What waits keeps its memory: so a thing has as many places as its [`weight`](Slot::weight) says,
//! and lies in the first of them.
//!
//! Nothing is forgotten. Of an interrupt that puts a thing into a place, and a work that looks
//! there, one comes first, for both change the place in one step. If it is the interrupt the work
//! finds the thing. Otherwise the interrupt finds the place as the work has left it, and with that
//! how many were taken before: all, so that it begins the work anew.

/// A place for one thing.
pub trait Slot {
    /// The thing.
    type Item;

    /// How many places a thing has: one or more, and the same for as long as it waits.
    fn weight(item: &Self::Item) -> usize;

    /// Puts a thing here. Gives it back if there is one already. Acquires what whoever has taken
    /// one before has released, and releases.
    fn put(&self, item: Self::Item) -> Result<(), Self::Item>;

    /// Takes the thing. Acquires and releases, also where there is none: it is not enough to read.
    fn take(&self) -> Option<Self::Item>;
}

/// How many places things have had. Wraps. Unordered.
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

/// How many bytes a place stands for.
const PLACE_SIZE: usize = 4 << 10;

/// The weight of a folio of so many bytes.
pub const fn weight(size: usize) -> usize {
    size.div_ceil(PLACE_SIZE)
}

/// How many bytes each of these has at most, where a page has `page_size`.
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

    /// Whether there are so many places: for whoever keeps others from putting things here.
    #[inline(always)]
    pub fn has_room(&self, places: usize) -> bool {
        self.waiting().saturating_add(places) <= self.slots.len()
    }

    /// Puts a thing behind the others. Gives it back if there are not enough places.
    ///
    /// One context at a time does this.
    #[inline(always)]
    pub fn put(&self, item: S::Item) -> Result<Todo, S::Item> {
        let nr_put = self.nr_put.get();
        let weight = S::weight(&item);
        let slot = match self.slot(nr_put) {
            Some(slot) if self.has_room(weight) => slot,
            _ => return Err(item),
        };
        slot.put(item)?;
        self.nr_put.set(nr_put.wrapping_add(weight));
        let half = self.slots.len() / 2;
        // What the work has taken meanwhile is no more.
        Ok(match self.waiting() {
            waiting if waiting == weight => Todo::Soon,
            waiting if half <= waiting && waiting.saturating_sub(weight) < half => Todo::Now,
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
        let weight = S::weight(&item);
        self.nr_taken.set(nr_taken.wrapping_add(weight));
        Some(item)
    }
}
