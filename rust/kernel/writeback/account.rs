// SPDX-License-Identifier: GPL-2.0

//! When a folio counts as dirty and dropbehind.
//!
//! Each `bdi_writeback` counts the pages of its dirty dropbehind folios. A folio counts while both
//! of its flags are set, and its flags are changed by many without a common lock: it is dirtied
//! and then accounted, it is cleaned and then accounted, and a lookup takes dropbehind from it at
//! any moment in between. So what is counted cannot follow from what one of them saw of the flags.
//!
//! It follows from a third flag, **counted**: the folio's pages are in the counter. Whoever has
//! changed one of the two flags calls [`settle`], which makes the third what the two ask for, and
//! changes the counter only if it was the one that changed the third:
//!
//! | change | C counterpart | counter |
//! | --- | --- | --- |
//! | a dropbehind folio becomes dirty | `folio_account_dirtied()` | + pages |
//! | a dirty dropbehind folio is cleaned for I/O | `folio_clear_dirty_for_io()` | - pages |
//! | ... or its dirty data is cancelled or truncated | `folio_account_cleaned()` | - pages |
//! | an ordinary lookup takes dropbehind from a dirty folio | `__filemap_get_folio()` | - pages |
//! | the inode of a counted folio gets another wb | `inode_do_switch_wbs()` | - old, + new |
//! | a counted folio moves in memory, or is split | `__folio_migrate_mapping()` | none |
//!
//! The counter is the sum over the counted folios at every moment, and when nobody is between a
//! change and its settling, these are the dirty dropbehind ones. For that,
//!
//! - a change of a flag comes **before** the settling looks at both: it is an atomic
//!   read-modify-write that returns a value, so a full barrier;
//! - the settling changes `counted` **before** it looks again: another one.
//!
//! Of two who settle at a time, the later one to change `counted` has seen the flags after both of
//! their changes. It is store buffering again, as in the [kick](super::kick).

/// What the protocol needs of a folio.
pub trait Flags {
    /// Whether the folio is dirty and dropbehind, both at one moment. Unordered by itself.
    fn is_dontcache_dirty(&self) -> bool;

    /// Sets `counted`, and says whether it was set before. A full barrier.
    fn test_and_set_counted(&self) -> bool;

    /// Clears `counted`, and says whether it was set before. A full barrier.
    fn test_and_clear_counted(&self) -> bool;
}

/// Makes `counted` agree with the other flags, one of which the caller has changed, and returns
/// what that adds to the counter, in folios: 1, 0 or -1.
///
/// `counts` is what the caller's change asks for: whether it has made a dropbehind folio dirty.
/// Only who does that begins to count the folio, because only it holds the lock of the page cache
/// and sets the dirty tag, which a switch of the wb goes by. The others count again what they have
/// found counted, at most.
///
/// The caller adds it to the counter of the wb that the folio's inode has, which must not change
/// between this and that.
///
/// Ends as soon as nobody else has changed a flag meanwhile.
#[inline(always)]
pub fn settle(folio: &impl Flags, mut counts: bool) -> i64 {
    let mut change = 0i64;
    loop {
        if counts {
            if folio.test_and_set_counted() {
                return change;
            }
            change = change.wrapping_add(1);
        } else {
            if !folio.test_and_clear_counted() {
                return change;
            }
            change = change.wrapping_sub(1);
        }
        let now = folio.is_dontcache_dirty();
        if now == counts {
            return change;
        }
        counts = now;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use core::cell::{Cell, RefCell};

    /// A folio whose flags others change: what each look at them finds is given.
    struct Scripted {
        looks: RefCell<Vec<bool>>,
        counted: Cell<bool>,
    }

    impl Scripted {
        fn new(counted: bool, looks: &[bool]) -> Self {
            Self {
                looks: RefCell::new(looks.iter().rev().copied().collect()),
                counted: Cell::new(counted),
            }
        }
    }

    impl Flags for Scripted {
        fn is_dontcache_dirty(&self) -> bool {
            self.looks.borrow_mut().pop().expect("one look too many")
        }
        fn test_and_set_counted(&self) -> bool {
            self.counted.replace(true)
        }
        fn test_and_clear_counted(&self) -> bool {
            self.counted.replace(false)
        }
    }

    fn settled(counted: bool, counts: bool, looks: &[bool]) -> (i64, bool) {
        let folio = Scripted::new(counted, looks);
        let change = settle(&folio, counts);
        assert!(folio.looks.borrow().is_empty(), "a look is missing");
        (change, folio.counted.get())
    }

    #[test]
    fn a_change_is_counted_once() {
        assert_eq!(settled(false, true, &[true]), (1, true));
        assert_eq!(settled(true, false, &[false]), (-1, false));
    }

    #[test]
    fn what_agrees_is_left_alone() {
        assert_eq!(settled(true, true, &[]), (0, true));
        assert_eq!(settled(false, false, &[]), (0, false));
    }

    #[test]
    fn a_change_that_is_taken_back_meanwhile_is_none() {
        assert_eq!(settled(false, true, &[false, false]), (0, false));
        assert_eq!(settled(true, false, &[true, true]), (0, true));
        assert_eq!(settled(false, true, &[false, true, true]), (1, true));
    }
}
