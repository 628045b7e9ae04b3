// SPDX-License-Identifier: GPL-2.0

//! Items that could not be handled because another user was in the way, and are retried.
//!
//! There is a fixed number of places, so remembering an item needs no allocation. Any context puts
//! an item into a free place ([`keep`]). One work at a time takes each item from its place, tries,
//! and puts it back if the user is still in the way ([`try_all`]). The first retry comes after a
//! millisecond, and the delay doubles each time ([`wait`]), until another item comes. After a
//! second the work gives up.
//!
//! The page at the end of a file is kept for the same time without another user: a writer that
//! appends to the file writes to the page again, and would have to read it back ([`is_end`]).

use core::ops::Range;

/// A place for one item.
pub trait Place {
    /// The item.
    type Item: Item;

    /// Puts an item here that is tried since `since`, in jiffies. Gives it back if the place is
    /// taken.
    fn put(&self, item: Self::Item, since: usize) -> Result<(), Self::Item>;

    /// Takes the item, if there is one, and returns since when it is tried.
    fn take(&self) -> Option<(Self::Item, usize)>;

    /// Whether this item is here now.
    fn has(&self, item: &Self::Item) -> bool;
}

/// An item to be handled.
pub trait Item {
    /// Tries. Returns whether the item is done, or no longer needs it. An item that is not urgent
    /// is done at the last try.
    fn try_to_do(&self, last: bool) -> bool;
}

/// How often a single item is tried: a second in all.
pub const TRIES: u32 = 10;

/// Milliseconds to the next try, after `tries` tries since the last item came.
///
/// # Examples
///
/// ```
/// use kernel::writeback::later::{wait, TRIES};
///
/// assert_eq!((0..TRIES).map(wait).sum::<u32>(), 1023);
/// ```
pub fn wait(tries: u32) -> u32 {
    1 << tries.min(TRIES - 1)
}

/// Milliseconds to the next try of items that are not urgent.
pub const AT_LEISURE_MS: u32 = 1 << (TRIES - 1);

/// Whether a folio with these bytes of a file contains the end of the file, at `size` bytes, and
/// has room for more.
#[inline(always)]
pub fn is_end(bytes: Range<i64>, size: i64) -> bool {
    bytes.start < size && size < bytes.end
}

/// Keeps an item for a retry. Gives it back if no place is free. An item that is kept already, or
/// was a moment ago, is not kept twice.
pub fn keep<P: Place>(places: &[P], mut item: P::Item, since: usize) -> Result<bool, P::Item> {
    if places.iter().any(|place| place.has(&item)) {
        return Ok(false);
    }
    for place in places {
        match place.put(item, since) {
            Ok(()) => return Ok(true),
            Err(back) => item = back,
        }
    }
    Err(item)
}

/// Tries all items, and returns whether any is left for a retry. `now` is the time in jiffies, of
/// which `second` make a second.
pub fn try_all<P: Place>(places: &[P], now: impl Fn() -> usize, second: usize) -> bool {
    let mut left = false;
    for place in places {
        let Some((item, since)) = place.take() else {
            continue;
        };
        let last = now().wrapping_sub(since) >= second;
        if item.try_to_do(last) || last {
            continue;
        }
        // Other items may have taken this place meanwhile, or all places.
        let kept = place
            .put(item, since)
            .or_else(|item| keep(places, item, since).map(|_| ()));
        left |= kept.is_ok();
        if let Err(item) = kept {
            // There is no other try.
            item.try_to_do(true);
        }
    }
    left
}
