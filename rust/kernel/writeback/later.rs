// SPDX-License-Identifier: GPL-2.0

//! Things that could not be done because somebody was in the way, and are tried again.
//!
//! There is a fixed number of places for them, so nothing is allocated to remember one. Whoever
//! finds somebody in the way puts it into a place that is free ([`keep`]), in any context; one work
//! at a time takes each from its place, tries, and puts it back if somebody is in the way still
//! ([`try_all`]). It comes after a millisecond, and after twice as long each time ([`wait`]), until
//! another thing comes. What was not done within a second is given up.

/// A place for one of them.
pub trait Place {
    /// What it is a place for.
    type Item: Item;

    /// Puts an item here that is tried since then, in jiffies, and gives it back if there is one.
    fn put(&self, item: Self::Item, since: usize) -> Result<(), Self::Item>;

    /// Takes the item, if there is one, and says since when it is tried.
    fn take(&self) -> Option<(Self::Item, usize)>;
}

/// Something to be done.
pub trait Item {
    /// Tries. Returns whether it is done, or need not be.
    fn try_to_do(&self) -> bool;
}

/// How often is tried what comes alone: a second in all.
const TRIES: u32 = 10;

/// After how many milliseconds the next try comes, when so many have been made since something came.
pub fn wait(tries: u32) -> u32 {
    1 << tries.min(TRIES - 1)
}

/// Keeps an item for a later try, and gives it back if no place is free.
pub fn keep<P: Place>(places: &[P], mut item: P::Item, since: usize) -> Result<(), P::Item> {
    for place in places {
        match place.put(item, since) {
            Ok(()) => return Ok(()),
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
        if item.try_to_do() || now().wrapping_sub(since) >= second {
            continue;
        }
        // Something else may have come here meanwhile, and everywhere.
        left |= match place.put(item, since) {
            Ok(()) => true,
            Err(item) => keep(places, item, since).is_ok(),
        };
    }
    left
}
