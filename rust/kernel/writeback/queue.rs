// SPDX-License-Identifier: GPL-2.0

//! A queue of things that the interrupts of a CPU leave for a task.
//!
//! Interrupts put things in ([`put`](Queue::put)), and a work takes them out in order
//! ([`take`](Queue::take)). A thing in an empty queue starts the work after a delay, so that more
//! things gather. A half-full queue starts it immediately.
//!
//! A waiting thing keeps its memory. So a thing occupies as many places as its
//! [`weight`](Slot::weight), and is stored in the first of them.
//!
//! No thing is forgotten. When an interrupt puts a thing into a place and the work looks there, one
//! comes first, because both change the place atomically. If the interrupt is first, the work finds
//! the thing. Otherwise the interrupt sees the place as the work left it, and so how many things
//! were taken: all, so that it starts the work again.

/// A place for one thing.
pub trait Slot {
    /// The thing.
    type Item;

    /// How many places a thing occupies: at least one, and constant while it waits.
    fn weight(item: &Self::Item) -> usize;

    /// Puts a thing here. Gives it back if the place is taken. Acquires what the context that took
    /// the previous thing has released, and releases.
    fn put(&self, item: Self::Item) -> Result<(), Self::Item>;

    /// Takes the thing. Acquires and releases, even if there is none: a plain read is not enough.
    fn take(&self) -> Option<Self::Item>;
}

/// A count of occupied places. Wraps. Unordered.
pub trait Count {
    /// The count.
    fn get(&self) -> usize;

    /// Sets the count. Only one context at a time does this.
    fn set(&self, count: usize);
}

/// What the caller has to do after a thing was put into a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Todo {
    /// Nothing: the work will run.
    Nothing,
    /// Start the work in [`SOON_MS`].
    Soon,
    /// Start the work now, even if it was to start later.
    Now,
}

/// For how long things wait for more, in milliseconds. No task waits for them, and each start of
/// the work costs two task switches.
pub const SOON_MS: u32 = 50;

/// The most folios of a bio that are ended in an interrupt and left to a task to be dropped. For
/// more folios a task switch pays off.
pub const FEW: u32 = 16;

/// Bytes for which a place stands.
const PLACE_SIZE: usize = 4 << 10;

/// The weight of a folio of `size` bytes.
pub const fn weight(size: usize) -> usize {
    size.div_ceil(PLACE_SIZE)
}

/// Largest size of each of these folios in bytes, for pages of `page_size` bytes.
pub const fn small(page_size: usize) -> usize {
    if page_size > 16 << 10 {
        page_size
    } else {
        16 << 10
    }
}

/// A queue in storage of the caller.
pub struct Queue<'a, S, C> {
    slots: &'a [S],
    nr_put: &'a C,
    nr_taken: &'a C,
}

impl<'a, S: Slot, C: Count> Queue<'a, S, C> {
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

    #[inline(always)]
    fn waiting(&self) -> usize {
        self.nr_put.get().wrapping_sub(self.nr_taken.get())
    }

    /// Whether `places` places are free. The caller excludes other contexts that put things here.
    #[inline(always)]
    pub fn has_room(&self, places: usize) -> bool {
        self.waiting().saturating_add(places) <= self.slots.len()
    }

    /// Puts a thing behind the others. Gives it back if there are too few places.
    ///
    /// Only one context at a time does this.
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
        // Things that the work has taken meanwhile no longer count.
        Ok(match self.waiting() {
            waiting if waiting == weight => Todo::Soon,
            waiting if half <= waiting && waiting.saturating_sub(weight) < half => Todo::Now,
            _ => Todo::Nothing,
        })
    }

    /// Takes the first thing.
    ///
    /// Only one context at a time does this.
    #[inline(always)]
    pub fn take(&self) -> Option<S::Item> {
        let nr_taken = self.nr_taken.get();
        let item = self.slot(nr_taken)?.take()?;
        let weight = S::weight(&item);
        self.nr_taken.set(nr_taken.wrapping_add(weight));
        Some(item)
    }
}
