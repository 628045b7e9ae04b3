// SPDX-License-Identifier: GPL-2.0

//! Things that could not be done because somebody was in the way, and are tried again.
//!
//! There is a fixed number of places for them, so nothing is allocated to remember one. Whoever
//! finds somebody in the way puts it into a place that is free ([`keep`]), in any context; one work
//! at a time takes each from its place, tries, and puts it back if somebody is in the way still
//! ([`try_all`]). It comes after a millisecond, and after twice as long each time ([`wait`]), until
//! another thing comes. What was not done within a second is given up.
//!
//! The page that a file ends in is kept for the same time although nobody is in the way: who
//! appends to the file writes to it again, and would have to read it back ([`is_end`]).

use core::ops::Range;

/// A place for one of them.
pub trait Place {
    /// What it is a place for.
    type Item: Item;

    /// Puts an item here that is tried since then, in jiffies, and gives it back if there is one.
    fn put(&self, item: Self::Item, since: usize) -> Result<(), Self::Item>;

    /// Takes the item, if there is one, and says since when it is tried.
    fn take(&self) -> Option<(Self::Item, usize)>;

    /// Whether this item is here, at the moment.
    fn has(&self, item: &Self::Item) -> bool;
}

/// Something to be done.
pub trait Item {
    /// Tries. Returns whether it is done, or need not be. What need not be done soon is done at the
    /// last try.
    fn try_to_do(&self, last: bool) -> bool;
}

/// How often is tried what comes alone: a second in all.
pub const TRIES: u32 = 10;

/// After how many milliseconds the next try comes, when so many have been made since something
/// came.
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

/// After how many milliseconds the next try comes of what need not be done soon.
pub const AT_LEISURE_MS: u32 = 1 << (TRIES - 1);

/// Whether a folio with these bytes of a file is the one that the file ends in, of `size` bytes:
/// there is room in it for more.
#[inline(always)]
pub fn is_end(bytes: Range<i64>, size: i64) -> bool {
    bytes.start < size && size < bytes.end
}

/// Keeps an item for a later try, and gives it back if no place is free. One that is kept already,
/// or was a moment ago, is not kept twice.
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

/// Tries all, and says whether any is left to be tried again. `now` is the time in jiffies, and
/// `second` how many of them make one.
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
        // Something else may have come here meanwhile, and everywhere.
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
