// SPDX-License-Identifier: GPL-2.0

//! The request that a `RWF_DONTCACHE` writer leaves for the flusher.
//!
//! A writer that has dirtied dropbehind pages wants them written soon, but not by itself. It sets
//! one bit of the wb and wakes the flusher; writers that find the bit set have nothing to do, for
//! the flusher that will take the bit will see their pages too. That holds by two orders:
//!
//! - a writer counts its pages **before** it looks at the bit ([`kick`]);
//! - the flusher takes the bit **before** it reads the counter ([`consume`]).
//!
//! Of a writer that skips and a flusher that takes the bit, at least one then sees what the other
//! did: either the writer's look comes after the taking, and it sets the bit again, or the
//! flusher's reading comes after the counting, and its round covers the pages. This is store
//! buffering: it needs a full barrier on both sides. The flusher's is its read-modify-write of the
//! bit; the writer's is [`Wb::order_after_dirtying`].
//!
//! Three bits of the wb are all that is remembered between rounds:
//!
//! | bit | set | taken |
//! | --- | --- | --- |
//! | pending | by a writer ([`kick`]) | when a round begins ([`consume`]) |
//! | left | when the flusher rests and inodes wait ([`rest`]), or inodes come from another wb | the same |
//! | stuck | when a round could write nothing ([`ended`]) | when one can, or nothing waits |

use super::round::{
    AGAIN_MS,
    STUCK_MS, //
};

/// What the protocol needs of a `bdi_writeback`.
pub trait Wb {
    /// Orders the counting of the caller's dirtied pages before its look at the bit.
    ///
    /// A full barrier, given that an atomic read-modify-write stands between the two (the unlock
    /// of the folio does): `smp_mb__after_atomic()`, which costs nothing on x86.
    fn order_after_dirtying(&self);

    /// Whether the wb has dirty inodes (`WB_has_dirty_io`). Unordered.
    fn has_dirty_io(&self) -> bool;

    /// Whether a request is pending (`WB_start_dontcache`). Unordered.
    fn is_pending(&self) -> bool;

    /// Makes a request pending and says whether one was before. A full barrier.
    fn test_and_set_pending(&self) -> bool;

    /// Takes the pending request and says whether there was one. A full barrier.
    fn test_and_clear_pending(&self) -> bool;

    /// Notes that dirty dropbehind pages are to be written without a kick (`WB_dontcache_left`):
    /// the flusher has left them, or they have come with an inode from another wb, and the caller
    /// has counted them here. A full barrier even if it was noted before: whoever takes the note
    /// afterwards sees them counted.
    fn set_left(&self);

    /// Whether that is noted. Unordered.
    fn is_left(&self) -> bool;

    /// Takes that note, and says whether there was one. A full barrier if there was.
    fn take_left(&self) -> bool;

    /// Notes whether the last round could write nothing (`WB_dontcache_stuck`).
    fn set_stuck(&self, stuck: bool);

    /// Whether that is noted.
    fn is_stuck(&self) -> bool;

    /// Whether inodes wait that may have dirty dropbehind pages (`b_dontcache`). Unordered.
    fn has_queue(&self) -> bool;

    /// The exact sum of the counter of dirty dropbehind pages. May be below zero while it changes.
    fn dontcache_dirty(&self) -> i64;
}

/// Leaves a request for the flusher of `wb`, whose pages the caller has dirtied.
///
/// Returns true to the one caller that made the request pending: it has to wake the flusher. The
/// test in front of the atomic operation keeps the cache line shared while a request is pending,
/// and comes first of all because that is what most writers find.
///
/// `has_dirty_pages` says whether the inode that was written to has any. It is asked where the wb
/// has no dirty inode: somebody else may have dirtied that inode just before, and not have put it
/// into the flusher's lists yet.
///
/// C counterpart: the section of `filemap_dontcache_kick_writeback()`, which asks the wb alone.
#[inline(always)]
pub fn kick(wb: &impl Wb, has_dirty_pages: impl FnOnce() -> bool) -> bool {
    wb.order_after_dirtying();
    !wb.is_pending() && (wb.has_dirty_io() || has_dirty_pages()) && !wb.test_and_set_pending()
}

/// Whether the flusher is asked for a round. Two looks at bits: this is what it costs work on a device
/// on which nobody uses DONTCACHE.
#[inline(always)]
pub fn is_asked_for(wb: &impl Wb) -> bool {
    wb.is_pending() || wb.is_left()
}

/// Takes the request, and says how many pages the flusher is to write for it or for what an earlier
/// one has left. None if there is neither, or nothing to look at: the caller does nothing then.
///
/// The request is taken first, so that a [`kick`] which comes while the pages are written makes
/// another round.
///
/// C counterpart: the first half of `wb_check_start_dontcache()`.
#[inline(always)]
pub fn consume(wb: &impl Wb) -> Option<i64> {
    // Both are taken.
    if !(wb.test_and_clear_pending() | wb.take_left()) {
        return None;
    }
    let pages = wb.dontcache_dirty();
    (pages > 0 || wb.has_queue()).then_some(pages)
}

/// A round has ended that was to write `budget` pages, and has written `written`.
///
/// What it leaves is for the next one, even if that comes before the flusher rests. What was counted
/// and not found may be of an inode that somebody has dirtied and not put into a list yet: nobody
/// else need ever ask for it.
#[inline(always)]
pub fn ended(wb: &impl Wb, budget: i64, written: i64) {
    wb.set_stuck(budget > 0 && written <= 0);
    if budget > written || wb.has_queue() {
        wb.set_left();
    }
}

/// The flusher is about to rest: in how many milliseconds it has to run again, if something is left,
/// or inodes wait that may have dirty dropbehind pages. A page may have been locked or its inode busy,
/// and nobody need ever write to it again. Where DONTCACHE is not used nothing is counted for that.
///
/// No C counterpart: there such pages wait for periodic writeback.
#[inline(always)]
pub fn rest(wb: &impl Wb) -> Option<u32> {
    if wb.has_queue() {
        wb.set_left();
    } else if !wb.is_left() {
        wb.set_stuck(false);
        return None;
    }
    Some(if wb.is_stuck() { STUCK_MS } else { AGAIN_MS })
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use core::cell::{Cell, RefCell};

    /// A wb that writes down the order in which it is used.
    #[derive(Default)]
    struct Recorder {
        dirty_io: bool,
        pending: Cell<bool>,
        left: Cell<bool>,
        stuck: Cell<bool>,
        queue: bool,
        dirty: i64,
        calls: RefCell<Vec<&'static str>>,
    }

    impl Recorder {
        fn call(&self, name: &'static str) {
            self.calls.borrow_mut().push(name);
        }
    }

    impl Wb for Recorder {
        fn order_after_dirtying(&self) {
            self.call("order");
        }
        fn has_dirty_io(&self) -> bool {
            self.call("dirty_io");
            self.dirty_io
        }
        fn is_pending(&self) -> bool {
            self.call("test");
            self.pending.get()
        }
        fn test_and_set_pending(&self) -> bool {
            self.call("set");
            self.pending.replace(true)
        }
        fn test_and_clear_pending(&self) -> bool {
            self.call("clear");
            self.pending.replace(false)
        }
        fn set_left(&self) {
            self.left.set(true);
        }
        fn is_left(&self) -> bool {
            self.left.get()
        }
        fn take_left(&self) -> bool {
            self.left.replace(false)
        }
        fn set_stuck(&self, stuck: bool) {
            self.stuck.set(stuck);
        }
        fn is_stuck(&self) -> bool {
            self.stuck.get()
        }
        fn has_queue(&self) -> bool {
            self.queue
        }
        fn dontcache_dirty(&self) -> i64 {
            self.call("sum");
            self.dirty
        }
    }

    #[test]
    fn the_first_kick_wakes() {
        let wb = Recorder {
            dirty_io: true,
            ..Recorder::default()
        };
        assert!(kick(&wb, || false));
        assert!(wb.pending.get());
        assert_eq!(*wb.calls.borrow(), ["order", "test", "dirty_io", "set"]);
    }

    #[test]
    fn a_second_kick_does_no_atomic_operation() {
        let wb = Recorder {
            dirty_io: true,
            pending: Cell::new(true),
            ..Recorder::default()
        };
        assert!(!kick(&wb, || false));
        assert_eq!(*wb.calls.borrow(), ["order", "test"]);
    }

    #[test]
    fn nothing_dirty_needs_no_flusher() {
        let wb = Recorder::default();
        assert!(!kick(&wb, || false));
        assert!(!wb.pending.get());
    }

    #[test]
    fn dirty_pages_of_no_listed_inode_need_it() {
        let wb = Recorder::default();
        assert!(kick(&wb, || true));
        assert_eq!(*wb.calls.borrow(), ["order", "test", "dirty_io", "set"]);
    }

    #[test]
    fn where_an_inode_is_listed_no_page_is_asked_for() {
        let wb = Recorder {
            dirty_io: true,
            ..Recorder::default()
        };
        assert!(kick(&wb, || unreachable!()));
    }

    #[test]
    fn the_request_is_taken_before_the_sum_is_read() {
        let wb = Recorder {
            pending: Cell::new(true),
            dirty: 7,
            ..Recorder::default()
        };
        assert_eq!(consume(&wb), Some(7));
        assert!(!wb.pending.get());
        assert_eq!(*wb.calls.borrow(), ["clear", "sum"]);
    }

    #[test]
    fn no_request_reads_no_sum() {
        let wb = Recorder {
            dirty: 7,
            ..Recorder::default()
        };
        assert_eq!(consume(&wb), None);
        assert_eq!(*wb.calls.borrow(), ["clear"]);
    }

    #[test]
    fn a_kick_during_the_round_makes_another() {
        let wb = Recorder {
            dirty_io: true,
            dirty: 1,
            ..Recorder::default()
        };
        assert!(kick(&wb, || false));
        assert_eq!(consume(&wb), Some(1));
        assert!(kick(&wb, || false));
        assert_eq!(consume(&wb), Some(1));
        assert_eq!(consume(&wb), None);
    }

    fn waiting() -> Recorder {
        Recorder {
            queue: true,
            dirty: 7,
            ..Recorder::default()
        }
    }

    #[test]
    fn what_is_left_is_served_without_a_kick() {
        let wb = waiting();
        assert_eq!(rest(&wb), Some(AGAIN_MS));
        assert_eq!(consume(&wb), Some(7));
        assert_eq!(consume(&wb), None);
    }

    #[test]
    fn a_kick_and_what_is_left_make_one_round() {
        let wb = Recorder {
            dirty_io: true,
            ..waiting()
        };
        assert!(rest(&wb).is_some() && kick(&wb, || false));
        assert_eq!(consume(&wb), Some(7));
        assert_eq!(consume(&wb), None);
    }

    #[test]
    fn nobody_waits_for_nothing() {
        let wb = Recorder::default();
        ended(&wb, 7, 7);
        assert_eq!(rest(&wb), None);
        assert!(!wb.left.get());
        assert!(wb.calls.borrow().is_empty(), "something was counted");
    }

    #[test]
    fn what_cannot_be_written_is_tried_at_leisure() {
        let wb = waiting();
        ended(&wb, 7, 0);
        assert_eq!(rest(&wb), Some(STUCK_MS));
        ended(&wb, 7, 1);
        assert_eq!(rest(&wb), Some(AGAIN_MS));
    }

    #[test]
    fn what_a_round_leaves_is_the_next_ones() {
        let wb = waiting();
        ended(&wb, 7, 7);
        assert_eq!(consume(&wb), Some(7));
    }

    #[test]
    fn what_is_counted_and_not_found_is_sought_again() {
        let wb = Recorder::default();
        ended(&wb, 7, 3);
        assert_eq!(rest(&wb), Some(AGAIN_MS));
        assert_eq!(consume(&wb), None);
        assert_eq!(rest(&wb), None);
    }
}
