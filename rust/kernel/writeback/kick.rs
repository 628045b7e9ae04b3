// SPDX-License-Identifier: GPL-2.0

//! The request that a `RWF_DONTCACHE` writer leaves for the flusher.
//!
//! A writer that has dirtied dropbehind pages wants them written, but not by itself, and not each
//! page alone. It sets one of two bits of the wb and sees to it that the flusher runs: at once if
//! enough pages have gathered, in a while otherwise (how many and how long: `pace`).
//! Writers that find the bit set have nothing to do, for the flusher that will take the bit will
//! see their pages too. That holds by two orders:
//!
//! - a writer counts its pages **before** it looks at the bits ([`ask`], [`kick`]);
//! - the flusher takes the bits **before** it reads the counter ([`consume`]).
//!
//! Of a writer that skips and a flusher that takes the bit, at least one then sees what the other
//! did: either the writer's look comes after the taking, and it sets the bit again, or the
//! flusher's reading comes after the counting, and its round covers the pages. This is store
//! buffering: it needs a full barrier on both sides. The flusher's is its read-modify-write of the
//! bit; the writer's is [`Wb::order_after_dirtying`].
//!
//! Three bits of the wb are all that is remembered between rounds, and when what is left is due:
//!
//! | bit | set | taken |
//! | --- | --- | --- |
//! | pending | by a writer or a round, for a round at once | when a round begins ([`consume`]) |
//! | left | by a writer, for a round in a while; when a round leaves some | the same, if due |
//! | stuck | when a round could write nothing ([`ended`]) | when one can, or nothing waits |
//!
//! Writers set them with [`ask`] and [`kick`], rounds with [`ended`], [`go_on`], and [`rest`].
//! Inodes that come from another wb leave theirs as well. What is left is also taken by a round
//! that begins anyway.
//!
//! Who sets left sets when it is due, and has the flusher run then. No writer puts that off, and a
//! round that keeps a rest does so once, by [`REST_MS`]. It is brought forward by a writer while
//! others' pages cannot be written, and by a round that leaves a rest. Other writers who find it
//! set leave it alone, and the flusher looks when it rests ([`rest`]).

use super::round::{
    Ended,
    REST_MS,
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

    /// How many dirty dropbehind pages there are, more or less. Unordered.
    fn about_dirty(&self) -> i64;

    /// From how many on a round begins at once. Unordered.
    fn kick_at(&self) -> i64;

    /// For how many milliseconds they wait otherwise. Unordered.
    fn delay_ms(&self) -> u32;

    /// Notes that dirty dropbehind pages are to be written without a kick (`WB_dontcache_left`):
    /// the flusher has left them, they have come with an inode from another wb, or they are few,
    /// and the caller has counted them here. Says whether it was noted before, and is a full
    /// barrier even then: whoever takes the note afterwards sees them counted.
    fn test_and_set_left(&self) -> bool;

    /// Whether that is noted. Unordered.
    fn is_left(&self) -> bool;

    /// Takes that note, and says whether there was one. A full barrier if there was.
    fn take_left(&self) -> bool;

    /// Notes when what is left is due: in so many milliseconds.
    fn set_due_in(&self, milliseconds: u32);

    /// Notes why the next round begins. Unordered: with a wrong one it is traced wrongly, and
    /// leaves a little more or less.
    fn set_why(&self, why: Why);

    /// Why the round begins that was asked for last.
    fn why(&self) -> Why;

    /// In how many milliseconds that is. None if it is due now.
    fn due_in(&self) -> Option<u32>;

    /// Notes whether the last round could write nothing (`WB_dontcache_stuck`).
    fn set_stuck(&self, stuck: bool);

    /// Whether that is noted.
    fn is_stuck(&self) -> bool;

    /// Whether inodes wait that may have dirty dropbehind pages (`b_dontcache`). Unordered.
    fn has_queue(&self) -> bool;

    /// The exact sum of the counter of dirty dropbehind pages. May be below zero while it changes.
    fn dontcache_dirty(&self) -> i64;
}

/// Why a round begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Why {
    /// Somebody has asked for one at once, for enough pages as a rule.
    #[default]
    Size,
    /// What a writer has left to wait is due.
    Deadline,
    /// What a round has left is, or what has come with an inode from another wb.
    Left,
}

/// What the flusher is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// So many pages: the exact count of those that are dirty and dropbehind.
    pub pages: i64,
    /// For this.
    pub why: Why,
    /// In how many milliseconds there is to be another round for what this one keeps. Zero if it
    /// may keep nothing, for some of it may have been kept before.
    pub rest_ms: u32,
}

/// When the flusher is to run for a writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// At once.
    Now,
    /// In so many milliseconds, or earlier.
    Within(u32),
}

/// Whether the flusher will see to the pages that the caller has dirtied without being asked again.
/// That is what most writers find, and costs no atomic operation.
#[inline(always)]
pub fn is_asked(wb: &impl Wb) -> bool {
    wb.order_after_dirtying();
    wb.is_pending() || wb.is_left() && !wb.is_stuck() && wb.about_dirty() < wb.kick_at()
}

/// Leaves a request for the flusher of `wb`, whose pages the caller has dirtied: for a round at
/// once if there are many, for one in a while otherwise.
///
/// Returns a value to the one caller that has to see to it that the flusher runs.
///
/// `has_dirty_pages` says whether the inode that was written to has any. It is asked where the wb
/// has no dirty inode: somebody else may have dirtied that inode just before, and not have put it
/// into the flusher's lists yet.
#[inline(always)]
pub fn ask(wb: &impl Wb, has_dirty_pages: impl FnOnce() -> bool) -> Option<Run> {
    if is_asked(wb) {
        return None;
    }
    if !wb.is_stuck() && wb.about_dirty() >= wb.kick_at() {
        return ask_now(wb, has_dirty_pages).then_some(Run::Now);
    }
    wait(wb, has_dirty_pages)
}

/// Makes a request pending, if there is anything to be written. True if that was not before.
#[inline(always)]
fn ask_now(wb: &impl Wb, has_dirty_pages: impl FnOnce() -> bool) -> bool {
    (wb.has_dirty_io() || has_dirty_pages()) && !wb.test_and_set_pending()
}

/// The rest of [`ask`] for the first page that is to wait, and for each while others cannot be
/// written: that says nothing of this one, which does not wait for longer because of it.
fn wait(wb: &impl Wb, has_dirty_pages: impl FnOnce() -> bool) -> Option<Run> {
    if !wb.has_dirty_io() && !has_dirty_pages() {
        return None;
    }
    let delay = wb.delay_ms();
    let soon = || wb.due_in().is_none_or(|due| due <= delay);
    let was_left = wb.test_and_set_left();
    if was_left && (!wb.is_stuck() || soon()) {
        return None;
    }
    wb.set_due_in(delay);
    if !was_left {
        wb.set_why(Why::Deadline);
    }
    Some(Run::Within(delay))
}

/// Leaves a request for a round at once, for the flusher of `wb`, whose pages the caller has
/// dirtied.
///
/// Returns true to the one caller that made the request pending: it has to wake the flusher. The
/// test in front of the atomic operation keeps the cache line shared while a request is pending,
/// and comes first of all because that is what most writers find. `has_dirty_pages` is as for
/// [`ask`].
///
/// C counterpart: the section of `filemap_dontcache_kick_writeback()`, which asks the wb alone.
#[inline(always)]
pub fn kick(wb: &impl Wb, has_dirty_pages: impl FnOnce() -> bool) -> bool {
    wb.order_after_dirtying();
    !wb.is_pending() && ask_now(wb, has_dirty_pages)
}

/// Whether the flusher is asked for a round now. Two looks at bits: this is what it costs work on a
/// device on which nobody uses DONTCACHE.
#[inline(always)]
pub fn is_asked_for(wb: &impl Wb) -> bool {
    wb.is_pending() || is_due(wb)
}

/// Whether pages have been left, and for long enough.
#[inline(always)]
fn is_due(wb: &impl Wb) -> bool {
    wb.is_left() && wb.due_in().is_none()
}

/// Takes the requests, and says what they come to. None if there is none now, or nothing to look
/// at: the caller does nothing then.
///
/// They are taken first, so that a request which comes while the pages are written makes another
/// round.
///
/// C counterpart: the first half of `wb_check_start_dontcache()`.
#[inline(always)]
pub fn consume(wb: &impl Wb) -> Option<Request> {
    let is_pending = wb.test_and_clear_pending();
    if !is_pending && !is_due(wb) {
        return None;
    }
    let rest_ms = if wb.is_left() {
        take_waiting(wb)
    } else {
        wb.delay_ms()
    };
    if is_pending {
        wb.set_why(Why::Size);
    }
    let pages = wb.dontcache_dirty();
    (pages > 0 || wb.has_queue()).then(|| Request {
        pages,
        why: wb.why(),
        rest_ms,
    })
}

/// Takes what is left as well: whichever was asked for, the round is for both. Returns how long
/// what it keeps may wait. That is looked at first, for a writer who finds nothing left sets it.
#[inline(never)]
fn take_waiting(wb: &impl Wb) -> u32 {
    let due_in = wb.due_in().unwrap_or(0);
    let may_be_kept = wb.why() == Why::Left;
    wb.take_left();
    if may_be_kept {
        due_in
    } else {
        due_in.max(REST_MS)
    }
}

/// Notes that pages are left, which the caller has counted. If that was noted before, they are due
/// when those are.
pub fn leave(wb: &impl Wb) {
    if !wb.test_and_set_left() {
        let delay = if wb.is_stuck() {
            STUCK_MS
        } else {
            wb.delay_ms()
        };
        wb.set_due_in(delay);
        wb.set_why(Why::Left);
    }
}

/// The same of pages that are due in so many milliseconds, or earlier if something was noted to be.
/// A round that begins once they are due keeps nothing.
fn leave_for(wb: &impl Wb, milliseconds: u32) {
    let due = wb.test_and_set_left().then(|| wb.due_in().unwrap_or(0));
    if due.is_none_or(|due| due > milliseconds) {
        wb.set_due_in(milliseconds);
    }
    wb.set_why(Why::Left);
}

/// A round has ended that was to write `budget` pages, and has written what is said.
///
/// What it leaves is for the next one, even if that comes before the flusher rests. What was
/// counted and not found may be of an inode that somebody has dirtied and not put into a list yet:
/// nobody else need ever ask for it. What was left on purpose is due when it would have been, or a
/// little later: see [`Request::rest_ms`].
///
/// Where nothing was counted there is nothing to leave, though inodes wait: they have had
/// dropbehind pages, and others are dirty. Whoever has counted a page that the sum lacks asks after
/// that.
#[inline(always)]
pub fn ended(wb: &impl Wb, budget: i64, round: Ended) {
    let counted = budget > 0;
    wb.set_stuck(counted && !round.progress);
    if let Some(milliseconds) = round.again_ms {
        leave_for(wb, milliseconds);
    } else if counted && (budget > round.pages || wb.has_queue()) {
        leave(wb);
    }
}

/// A round has ended for writers who let pages gather: if enough have come while it ran, there is
/// to be another one. No writer need look again.
pub fn go_on(wb: &impl Wb) {
    if !wb.is_stuck() && wb.about_dirty() >= wb.kick_at() {
        wb.test_and_set_pending();
    }
}

/// The flusher is about to rest: in how many milliseconds it has to run again, if something is
/// left, or inodes wait that have dirty dropbehind pages. A page may have been locked or its inode
/// busy, and nobody need ever write to it again. Where DONTCACHE is not used nothing is summed for
/// that.
///
/// No C counterpart: there such pages wait for periodic writeback.
#[inline(always)]
pub fn rest(wb: &impl Wb) -> Option<u32> {
    // A rescuer may have left a request alone, or enough have come beside the last round.
    if wb.is_pending() {
        return Some(0);
    }
    if !wb.is_left() {
        // A rescuer may have queued the inodes for other work.
        if !wb.has_queue() || wb.dontcache_dirty() <= 0 {
            wb.set_stuck(false);
            return None;
        }
        leave(wb);
    }
    Some(wb.due_in().unwrap_or(0))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use core::cell::{Cell, RefCell};

    const DELAY_MS: u32 = 20;

    fn written(pages: i64) -> Ended {
        Ended {
            pages,
            kept: 0,
            again_ms: None,
            progress: pages > 0,
        }
    }

    fn pages(request: Option<Request>) -> Option<i64> {
        request.map(|request| request.pages)
    }

    /// A wb that writes down the order in which it is used.
    #[derive(Default)]
    struct Recorder {
        dirty_io: bool,
        pending: Cell<bool>,
        left: Cell<bool>,
        stuck: Cell<bool>,
        queue: bool,
        dirty: i64,
        kick_at: i64,
        now: Cell<u32>,
        due: Cell<u32>,
        why: Cell<Why>,
        calls: RefCell<Vec<&'static str>>,
    }

    impl Recorder {
        fn call(&self, name: &'static str) {
            self.calls.borrow_mut().push(name);
        }

        fn pass(&self, milliseconds: u32) {
            self.now.set(self.now.get() + milliseconds);
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
            self.call("pending?");
            self.pending.get()
        }
        fn test_and_set_pending(&self) -> bool {
            self.call("set pending");
            self.pending.replace(true)
        }
        fn test_and_clear_pending(&self) -> bool {
            self.call("clear pending");
            self.pending.replace(false)
        }
        fn about_dirty(&self) -> i64 {
            self.call("about");
            self.dirty
        }
        fn kick_at(&self) -> i64 {
            self.kick_at
        }
        fn delay_ms(&self) -> u32 {
            DELAY_MS
        }
        fn test_and_set_left(&self) -> bool {
            self.call("set left");
            self.left.replace(true)
        }
        fn is_left(&self) -> bool {
            self.call("left?");
            self.left.get()
        }
        fn take_left(&self) -> bool {
            self.call("clear left");
            self.left.replace(false)
        }
        fn set_due_in(&self, milliseconds: u32) {
            self.due.set(self.now.get() + milliseconds);
        }
        fn set_why(&self, why: Why) {
            self.why.set(why);
        }
        fn why(&self) -> Why {
            self.call("why?");
            self.why.get()
        }
        fn due_in(&self) -> Option<u32> {
            self.due
                .get()
                .checked_sub(self.now.get())
                .filter(|&milliseconds| milliseconds > 0)
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

    /// With an inode in the flusher's lists, and `dirty` pages where 100 are many.
    fn with(dirty: i64) -> Recorder {
        Recorder {
            dirty_io: true,
            dirty,
            kick_at: 100,
            ..Recorder::default()
        }
    }

    #[test]
    fn the_first_kick_wakes() {
        let wb = with(1);
        assert!(kick(&wb, || false));
        assert!(wb.pending.get());
        assert_eq!(
            *wb.calls.borrow(),
            ["order", "pending?", "dirty_io", "set pending"]
        );
    }

    #[test]
    fn where_a_round_is_pending_nothing_else_is_looked_at() {
        let wb = with(1000);
        wb.pending.set(true);
        assert!(!kick(&wb, || unreachable!()));
        assert_eq!(ask(&wb, || unreachable!()), None);
        assert_eq!(
            *wb.calls.borrow(),
            ["order", "pending?", "order", "pending?"]
        );
    }

    #[test]
    fn many_pages_are_not_left_to_wait() {
        let wb = with(100);
        wb.test_and_set_left();
        assert_eq!(ask(&wb, || false), Some(Run::Now));
        assert!(wb.pending.get());
        assert_eq!(pages(consume(&wb)), Some(100));
        assert_eq!(consume(&wb), None);
    }

    #[test]
    fn the_first_of_few_pages_sets_the_time() {
        let wb = with(99);
        assert_eq!(ask(&wb, || false), Some(Run::Within(DELAY_MS)));
        wb.pass(DELAY_MS - 1);
        assert_eq!(ask(&wb, || unreachable!()), None);
        assert!(!is_asked_for(&wb));
        assert_eq!(consume(&wb), None);
        assert_eq!(rest(&wb), Some(1));
        wb.pass(1);
        assert!(is_asked_for(&wb));
        assert_eq!(pages(consume(&wb)), Some(99));
    }

    #[test]
    fn a_wait_costs_the_others_no_atomic_operation() {
        let wb = with(1);
        ask(&wb, || false);
        wb.calls.take();
        assert_eq!(ask(&wb, || unreachable!()), None);
        assert_eq!(*wb.calls.borrow(), ["order", "pending?", "left?", "about"]);
    }

    #[test]
    fn a_round_knows_why_it_begins() {
        let wb = with(99);
        let why = || consume(&wb).map(|request| request.why);
        kick(&wb, || false);
        assert_eq!(why(), Some(Why::Size));
        ask(&wb, || false);
        wb.pass(DELAY_MS);
        assert_eq!(why(), Some(Why::Deadline));
        ended(&wb, 99, written(1));
        wb.pass(DELAY_MS);
        assert_eq!(why(), Some(Why::Left));
        // Who was first says why, and who asks for a round at once.
        ask(&wb, || false);
        leave(&wb);
        wb.pass(DELAY_MS);
        assert_eq!(why(), Some(Why::Deadline));
        leave(&wb);
        kick(&wb, || false);
        assert_eq!(why(), Some(Why::Size));
    }

    /// Whoever has noted meanwhile that a page waits has to do with another one.
    #[test]
    fn what_is_left_on_purpose_is_soon_due() {
        let round = Ended {
            again_ms: Some(5),
            ..written(50)
        };
        for noted in [false, true] {
            let wb = with(99);
            if noted {
                ask(&wb, || false);
            }
            ended(&wb, 99, round);
            assert_eq!(rest(&wb), Some(5));
            wb.pass(5);
            assert_eq!(consume(&wb).map(|asked| asked.why), Some(Why::Left));
        }
        // What is due even sooner stays so.
        let wb = with(99);
        ask(&wb, || false);
        wb.pass(DELAY_MS - 1);
        ended(&wb, 99, round);
        assert_eq!(rest(&wb), Some(1));
    }

    /// The pages that wait are due when the first of them is; no round that keeps some puts it off
    /// for longer than a rest may wait, nor twice.
    #[test]
    fn what_is_kept_is_due_when_it_would_be() {
        let rest_ms = |wb: &Recorder| consume(wb).map(|asked| asked.rest_ms);
        let kept = |milliseconds| Ended {
            again_ms: Some(milliseconds),
            ..written(1)
        };
        // Nobody has waited.
        let wb = with(200);
        assert_eq!(ask(&wb, || false), Some(Run::Now));
        assert_eq!(rest_ms(&wb), Some(DELAY_MS));
        ended(&wb, 200, kept(DELAY_MS));
        // Some have waited since.
        wb.pass(DELAY_MS - 1);
        assert!(kick(&wb, || false));
        assert_eq!(rest_ms(&wb), Some(1));
        ended(&wb, 200, kept(1));
        wb.pass(1);
        assert!(kick(&wb, || false));
        assert_eq!(rest_ms(&wb), Some(0));
        // The deadline of what was not kept yet.
        let wb = with(99);
        ask(&wb, || false);
        wb.pass(DELAY_MS);
        assert_eq!(rest_ms(&wb), Some(REST_MS));
        ended(&wb, 99, kept(REST_MS));
        wb.pass(REST_MS);
        assert_eq!(rest_ms(&wb), Some(0));
    }

    #[test]
    fn what_has_come_meanwhile_is_written_at_once() {
        let wb = with(99);
        go_on(&wb);
        assert!(!wb.pending.get());
        let wb = with(100);
        go_on(&wb);
        assert_eq!(rest(&wb), Some(0));
        assert_eq!(consume(&wb).map(|asked| asked.why), Some(Why::Size));
        let wb = with(100);
        wb.set_stuck(true);
        go_on(&wb);
        assert!(!wb.pending.get());
    }

    #[test]
    fn a_request_at_once_is_for_size_whatever_was_noted_since() {
        let wb = with(200);
        assert_eq!(ask(&wb, || false), Some(Run::Now));
        leave(&wb);
        assert_eq!(consume(&wb).map(|asked| asked.why), Some(Why::Size));
    }

    #[test]
    fn nothing_dirty_needs_no_flusher() {
        let wb = Recorder::default();
        assert!(!kick(&wb, || false));
        assert_eq!(ask(&wb, || false), None);
        assert!(!wb.pending.get() && !wb.left.get());
    }

    #[test]
    fn dirty_pages_of_no_listed_inode_need_it() {
        let wb = Recorder::default();
        assert!(kick(&wb, || true));
        let wb = Recorder {
            kick_at: 100,
            ..Recorder::default()
        };
        assert_eq!(ask(&wb, || true), Some(Run::Within(DELAY_MS)));
    }

    #[test]
    fn where_an_inode_is_listed_no_page_is_asked_for() {
        assert!(kick(&with(1), || unreachable!()));
        assert!(ask(&with(1), || unreachable!()).is_some());
        assert!(ask(&with(100), || unreachable!()).is_some());
    }

    #[test]
    fn the_request_is_taken_before_the_sum_is_read() {
        let wb = with(7);
        wb.pending.set(true);
        wb.left.set(true);
        assert_eq!(pages(consume(&wb)), Some(7));
        assert!(!wb.pending.get() && !wb.left.get());
        // What is left is asked for its time first: afterwards a writer sets it anew.
        let calls = [
            "clear pending",
            "left?",
            "why?",
            "clear left",
            "sum",
            "why?",
        ];
        assert_eq!(*wb.calls.borrow(), calls);
    }

    #[test]
    fn no_request_reads_no_sum() {
        let wb = with(7);
        assert_eq!(consume(&wb), None);
        assert_eq!(*wb.calls.borrow(), ["clear pending", "left?"]);
    }

    #[test]
    fn a_kick_during_the_round_makes_another() {
        let wb = with(1);
        assert!(kick(&wb, || false));
        assert_eq!(pages(consume(&wb)), Some(1));
        assert!(kick(&wb, || false));
        assert_eq!(pages(consume(&wb)), Some(1));
        assert_eq!(consume(&wb), None);
    }

    fn waiting() -> Recorder {
        Recorder {
            queue: true,
            ..with(7)
        }
    }

    #[test]
    fn what_is_left_is_served_without_a_kick() {
        let wb = waiting();
        assert_eq!(rest(&wb), Some(DELAY_MS));
        wb.pass(DELAY_MS);
        assert_eq!(pages(consume(&wb)), Some(7));
        assert_eq!(consume(&wb), None);
    }

    #[test]
    fn a_kick_and_what_is_left_make_one_round() {
        let wb = waiting();
        assert!(rest(&wb).is_some() && kick(&wb, || false));
        assert_eq!(pages(consume(&wb)), Some(7));
        wb.pass(DELAY_MS);
        assert_eq!(consume(&wb), None);
    }

    #[test]
    fn what_is_due_is_not_put_off() {
        let wb = waiting();
        assert_eq!(rest(&wb), Some(DELAY_MS));
        wb.pass(5);
        ended(&wb, 7, written(3));
        assert_eq!(rest(&wb), Some(DELAY_MS - 5));
        wb.pass(DELAY_MS);
        assert_eq!(rest(&wb), Some(0));
    }

    #[test]
    fn nobody_waits_for_nothing() {
        let wb = Recorder::default();
        ended(&wb, 7, written(7));
        assert_eq!(rest(&wb), None);
        assert!(!wb.left.get());
        assert!(!wb.calls.borrow().contains(&"sum"), "something was counted");
    }

    #[test]
    fn what_cannot_be_written_is_tried_at_leisure() {
        let wb = waiting();
        ended(&wb, 7, written(0));
        assert_eq!(rest(&wb), Some(STUCK_MS));
        wb.pass(STUCK_MS);
        assert_eq!(pages(consume(&wb)), Some(7));
        ended(&wb, 7, written(1));
        assert_eq!(rest(&wb), Some(DELAY_MS));
    }

    #[test]
    fn a_writer_does_not_wait_for_what_cannot_be_written() {
        let wb = waiting();
        ended(&wb, 7, written(0));
        assert_eq!(ask(&wb, || false), Some(Run::Within(DELAY_MS)));
        assert_eq!(ask(&wb, || false), None);
        wb.pass(DELAY_MS);
        assert_eq!(pages(consume(&wb)), Some(7));
    }

    #[test]
    fn what_cannot_be_written_makes_no_round_at_once() {
        let wb = Recorder {
            queue: true,
            ..with(100)
        };
        ended(&wb, 100, written(0));
        assert_eq!(ask(&wb, || false), Some(Run::Within(DELAY_MS)));
        wb.pass(5);
        assert_eq!(ask(&wb, || false), None);
        assert_eq!(wb.due_in(), Some(DELAY_MS - 5));
        wb.pass(DELAY_MS);
        assert_eq!(pages(consume(&wb)), Some(100));
        ended(&wb, 100, written(1));
        assert_eq!(ask(&wb, || false), Some(Run::Now));
    }

    #[test]
    fn inodes_that_have_nothing_are_left_to_others() {
        let wb = Recorder {
            queue: true,
            ..with(0)
        };
        ended(&wb, 0, written(0));
        assert_eq!(rest(&wb), None);
        assert!(!wb.stuck.get() && !wb.left.get());
    }

    #[test]
    fn inodes_that_nobody_has_asked_for_are_looked_at() {
        let wb = Recorder {
            queue: true,
            ..with(1)
        };
        assert_eq!(rest(&wb), Some(DELAY_MS));
    }

    #[test]
    fn what_a_round_leaves_is_the_next_ones() {
        let wb = waiting();
        ended(&wb, 7, written(7));
        wb.pass(DELAY_MS);
        assert_eq!(pages(consume(&wb)), Some(7));
    }

    #[test]
    fn what_is_counted_and_not_found_is_sought_again() {
        let wb = Recorder::default();
        ended(&wb, 7, written(3));
        assert_eq!(rest(&wb), Some(DELAY_MS));
        wb.pass(DELAY_MS);
        assert_eq!(consume(&wb), None);
        assert_eq!(rest(&wb), None);
    }
}
