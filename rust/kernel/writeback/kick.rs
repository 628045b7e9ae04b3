// SPDX-License-Identifier: GPL-2.0

//! How a `RWF_DONTCACHE` writer requests a round from the flusher.
//!
//! A writer that has dirtied dropbehind pages sets one of two bits of the wb, and queues the
//! flusher: immediately if enough pages have gathered, after [`DELAY_MS`] otherwise. A writer that
//! finds the bit set does nothing, because the flusher that takes the bit will see that writer's
//! pages too. This depends on two orders:
//!
//! - a writer counts its pages **before** it looks at the bits ([`ask`]);
//! - the flusher takes the bits **before** it reads the counter ([`consume`]).
//!
//! If a writer skips while the flusher takes the bit, then at least one of them sees what the other
//! did: either the writer looks after the bit was taken, and sets it again, or the flusher reads
//! the counter after the writer has counted, and its round covers the pages. This is the pattern of
//! store buffering: it needs a full barrier on both sides. The flusher's barrier is its
//! read-modify-write of the bit; the writer's is [`Wb::order_after_dirtying`].
//!
//! | bit | set | taken by [`consume`] |
//! | --- | --- | --- |
//! | pending | by a writer, or at the end of a round | always |
//! | left | by a writer of few pages, a round, or a flusher that rests | if due, or with pending |
//!
//! A context that finds the left bit clear sets when the pages are due, then the bit, and then
//! queues the flusher for that time. A round that leaves pages may set an earlier time. If several
//! contexts do so at once, any of the times may remain: none is more than [`DELAY_MS`] away.
//!
//! While a round runs, the threshold is infinite: a writer may request a round after the delay, but
//! not one at once. The end of the round sets the threshold again ([`ended`]), and begins the next
//! round itself if enough pages have come meanwhile. The threshold stays infinite if the round
//! could write nothing, or a slow device has enough: then the flusher comes back by itself.

use super::round::Ended;

/// For how long a dirty dropbehind page waits for more pages, in milliseconds. Each round costs a
/// wake-up, and the more dirty pages it finds the larger are the device's writes.
pub const DELAY_MS: u32 = 200;

/// The dirty dropbehind pages of `1 << page_shift` bytes at which a writer kicks the flusher: 16
/// MiB, but no more than a quarter of the `background` pages at which background writeback begins.
///
/// # Examples
///
/// ```
/// use kernel::writeback::kick::kick_at;
///
/// assert_eq!(kick_at(12, 1 << 20), 4096);
/// assert_eq!(kick_at(12, 400), 100);
/// ```
pub fn kick_at(page_shift: u32, background: u64) -> i64 {
    let quarter = i64::try_from(background / 4).unwrap_or(i64::MAX);
    quarter.min((16 << 20) >> page_shift).max(1)
}

/// A bit of a wb's state (`enum wb_state`).
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Bit {
    /// A round is requested now (`WB_start_dontcache`).
    Pending,
    /// Dirty dropbehind pages are to be written without a kick (`WB_dontcache_left`). Either a
    /// round has left them, they are few, or a flusher that was about to rest has found them.
    Left,
}

/// What the protocol needs of a `bdi_writeback`.
pub trait Wb {
    /// Orders the counting of the caller's dirtied pages before its look at the bit.
    ///
    /// A full barrier. `smp_mb__after_atomic()` is enough, because an atomic read-modify-write
    /// comes between the counting and the look: the unlock of the folio. On x86 it costs nothing.
    fn order_after_dirtying(&self);

    /// Whether `bit` is set. Unordered.
    fn test(&self, bit: Bit) -> bool;

    /// Sets `bit`, and returns whether it was set before. A full barrier even if it was: a flusher
    /// that takes the bit later sees the pages that the caller has counted.
    fn test_and_set(&self, bit: Bit) -> bool;

    /// Clears `bit`, and returns whether it was set before. A full barrier.
    fn test_and_clear(&self, bit: Bit) -> bool;

    /// Approximate number of dirty dropbehind pages. Unordered.
    fn about_dirty(&self) -> i64;

    /// The threshold: a round begins immediately at this number of pages. Unordered.
    fn kick_at(&self) -> i64;

    /// Sets the threshold. Only the flusher calls this. A full barrier, for [`ended`].
    fn set_kick_at(&self, pages: i64);

    /// Sets when the left pages are due: in so many milliseconds.
    fn set_due_in(&self, milliseconds: u32);

    /// In how many milliseconds the left pages are due. None if they are due now. Reads the time
    /// after an earlier look at the bit.
    fn due_in(&self) -> Option<u32>;

    /// Whether `b_dontcache` has inodes, which may have dirty dropbehind pages. Unordered.
    fn has_queue(&self) -> bool;

    /// The exact sum of the counter of dirty dropbehind pages. May be negative while the counter
    /// changes.
    fn dontcache_dirty(&self) -> i64;
}

/// When the flusher is to run for a writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// Immediately.
    Now,
    /// After [`DELAY_MS`], or earlier.
    Later,
}

/// Whether the flusher will see the pages that the caller has dirtied without another request. This
/// is true for most writers, and costs no atomic operation.
#[inline(always)]
pub fn is_asked(wb: &impl Wb) -> bool {
    wb.order_after_dirtying();
    wb.test(Bit::Pending) || wb.test(Bit::Left) && wb.about_dirty() < wb.kick_at()
}

/// Requests a round for the pages that the caller has dirtied: immediately if there are many, after
/// the delay otherwise.
///
/// Returns a value only to the caller that has to queue the flusher.
///
/// C counterpart: the section of `filemap_dontcache_kick_writeback()`, which requests an immediate
/// round whenever the wb has dirty inodes.
#[inline(always)]
pub fn ask(wb: &impl Wb) -> Option<Run> {
    if is_asked(wb) {
        return None;
    }
    if wb.about_dirty() >= wb.kick_at() {
        return (!wb.test_and_set(Bit::Pending)).then_some(Run::Now);
    }
    leave(wb).then_some(Run::Later)
}

/// Whether a round is requested now. On a device without DONTCACHE these two reads of bits are the
/// whole cost.
#[inline(always)]
pub fn is_asked_for(wb: &impl Wb) -> bool {
    wb.test(Bit::Pending) || is_due(wb)
}

/// Whether pages are left and due.
#[inline(always)]
fn is_due(wb: &impl Wb) -> bool {
    wb.test(Bit::Left) && wb.due_in().is_none()
}

/// Takes the requests and returns how many pages the round is to write: the exact count of dirty
/// dropbehind pages, which may be zero. None if the caller has nothing to do.
///
/// The requests are taken first, so that a request that arrives during the round starts another
/// round.
///
/// C counterpart: the first half of `wb_check_start_dontcache()`.
#[inline(always)]
pub fn consume(wb: &impl Wb) -> Option<i64> {
    if !wb.test_and_clear(Bit::Pending) && !is_due(wb) {
        return None;
    }
    // The round serves both requests.
    let pages = if wb.test(Bit::Left) && wb.test_and_clear(Bit::Left) {
        // The round that left pages may have left the threshold infinite. So a round follows even
        // if no page is counted, because its end sets the threshold again.
        wb.dontcache_dirty()
    } else {
        let pages = wb.dontcache_dirty();
        if pages <= 0 && !wb.has_queue() {
            return None;
        }
        pages
    };
    wb.set_kick_at(i64::MAX);
    Some(pages)
}

/// Sets the left bit for pages that the caller has counted. The caller has found the bit clear.
/// Returns whether it still was.
pub fn leave(wb: &impl Wb) -> bool {
    // Before the bit: otherwise a flusher that runs just then finds the pages due.
    wb.set_due_in(DELAY_MS);
    !wb.test_and_set(Bit::Left)
}

/// Ends a round that was to write `counted` pages. Writers kick again at `kick_at` pages, plus the
/// pages that the round has left.
///
/// The next round writes what this round leaves, even if it begins before the flusher rests. Pages
/// that were counted and not found may belong to an inode that a writer has dirtied and not yet put
/// into a list. There may never be another request for these pages.
///
/// If no page was counted, the round leaves nothing, even if `b_dontcache` has inodes: these had
/// dirty dropbehind pages before, and now have only other dirty pages. A writer whose page is not
/// yet in the sum requests a round afterwards.
pub fn ended(wb: &impl Wb, counted: i64, kick_at: i64, round: Ended) {
    let rest = counted
        .saturating_sub(round.pages)
        .min(wb.about_dirty())
        .max(0);
    let spares_the_device = round.again_ms.is_some_and(|milliseconds| milliseconds > 0);
    wb.set_kick_at(if spares_the_device || counted > 0 && !round.progress {
        i64::MAX
    } else {
        kick_at.saturating_add(rest)
    });
    if let Some(milliseconds) = round.again_ms {
        // An earlier due time is kept.
        if !wb.test_and_set(Bit::Left) || wb.due_in().is_some_and(|due| due > milliseconds) {
            wb.set_due_in(milliseconds);
        }
    } else if counted > 0 && (counted > round.pages || wb.has_queue()) && !wb.test(Bit::Left) {
        leave(wb);
    }
    // Enough pages may have come during the round, and there may be no later writer that requests a
    // round for them: the last one may have read the infinite threshold. The sum confirms it: the
    // approximate number may stay too high, and then the flusher would run again and again.
    let enough = wb.kick_at();
    if wb.about_dirty() >= enough && wb.dontcache_dirty() >= enough {
        wb.test_and_set(Bit::Pending);
    }
}

/// The flusher is about to rest. Returns in how many milliseconds it has to run again, if pages are
/// left, or queued inodes have dirty dropbehind pages. A page may have been locked or its inode
/// busy, and there may never be another write to it. Without DONTCACHE no sum is computed.
///
/// No C counterpart: in C such pages wait for periodic writeback.
#[inline(always)]
pub fn rest(wb: &impl Wb) -> Option<u32> {
    // A rescuer may have skipped a request, or enough pages may have come beside the last round.
    if wb.test(Bit::Pending) {
        return Some(0);
    }
    if !wb.test(Bit::Left) {
        // A rescuer may have queued the inodes for other work.
        if !wb.has_queue() || wb.dontcache_dirty() <= 0 {
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

    /// Writers kick at this number of pages.
    const MANY: i64 = 100;

    fn written(pages: i64) -> Ended {
        Ended {
            pages,
            again_ms: None,
            progress: pages > 0,
        }
    }

    /// A wb that records the order in which it is used.
    #[derive(Default)]
    struct Recorder {
        pending: Cell<bool>,
        left: Cell<bool>,
        queue: bool,
        dirty: i64,
        /// By how much the approximate number is too high.
        excess: i64,
        kick_at: Cell<i64>,
        now: Cell<u32>,
        due: Cell<u32>,
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
        fn test(&self, bit: Bit) -> bool {
            let (name, value) = match bit {
                Bit::Pending => ("pending?", &self.pending),
                Bit::Left => ("left?", &self.left),
            };
            self.call(name);
            value.get()
        }
        fn test_and_set(&self, bit: Bit) -> bool {
            let (name, value) = match bit {
                Bit::Pending => ("set pending", &self.pending),
                Bit::Left => ("set left", &self.left),
            };
            self.call(name);
            value.replace(true)
        }
        fn test_and_clear(&self, bit: Bit) -> bool {
            let (name, value) = match bit {
                Bit::Pending => ("clear pending", &self.pending),
                Bit::Left => ("clear left", &self.left),
            };
            self.call(name);
            value.replace(false)
        }
        fn about_dirty(&self) -> i64 {
            self.call("about");
            self.dirty + self.excess
        }
        fn kick_at(&self) -> i64 {
            self.kick_at.get()
        }
        fn set_kick_at(&self, pages: i64) {
            self.kick_at.set(pages);
        }
        fn set_due_in(&self, milliseconds: u32) {
            self.due.set(self.now.get() + milliseconds);
        }
        fn due_in(&self) -> Option<u32> {
            self.due
                .get()
                .checked_sub(self.now.get())
                .filter(|&milliseconds| milliseconds > 0)
        }
        fn has_queue(&self) -> bool {
            self.queue
        }
        fn dontcache_dirty(&self) -> i64 {
            self.call("sum");
            self.dirty
        }
    }

    /// A wb with `dirty` pages; the threshold is [`MANY`].
    fn with(dirty: i64) -> Recorder {
        Recorder {
            dirty,
            kick_at: Cell::new(MANY),
            ..Recorder::default()
        }
    }

    #[test]
    fn many_pages_begin_a_round_at_once() {
        let wb = with(100);
        wb.test_and_set(Bit::Left);
        assert_eq!(ask(&wb), Some(Run::Now));
        assert!(wb.pending.get());
        assert_eq!(consume(&wb), Some(100));
        assert_eq!(consume(&wb), None);
    }

    #[test]
    fn few_pages_wait_for_the_delay_of_the_first() {
        let wb = with(99);
        assert_eq!(ask(&wb), Some(Run::Later));
        wb.pass(DELAY_MS - 1);
        assert_eq!(ask(&wb), None);
        assert!(!is_asked_for(&wb));
        assert_eq!(consume(&wb), None);
        assert_eq!(rest(&wb), Some(1));
        wb.pass(1);
        assert!(is_asked_for(&wb));
        assert_eq!(consume(&wb), Some(99));
    }

    #[test]
    fn a_writer_that_finds_the_bit_set_does_no_atomic_operation() {
        let wb = with(1);
        ask(&wb);
        wb.calls.take();
        assert_eq!(ask(&wb), None);
        assert_eq!(*wb.calls.borrow(), ["order", "pending?", "left?", "about"]);
    }

    #[test]
    fn no_sum_is_read_without_a_request() {
        let wb = with(7);
        assert_eq!(consume(&wb), None);
        assert_eq!(*wb.calls.borrow(), ["clear pending", "left?"]);
    }

    fn with_queue() -> Recorder {
        Recorder {
            queue: true,
            ..with(7)
        }
    }

    #[test]
    fn left_pages_are_written_without_a_kick() {
        let wb = with_queue();
        assert_eq!(rest(&wb), Some(DELAY_MS));
        wb.pass(DELAY_MS);
        assert_eq!(consume(&wb), Some(7));
        assert_eq!(consume(&wb), None);
    }

    #[test]
    fn due_pages_do_not_wait_again() {
        let wb = with_queue();
        assert_eq!(rest(&wb), Some(DELAY_MS));
        wb.pass(5);
        ended(&wb, 7, MANY, written(3));
        assert_eq!(rest(&wb), Some(DELAY_MS - 5));
        wb.pass(DELAY_MS);
        assert_eq!(rest(&wb), Some(0));
    }

    #[test]
    fn the_flusher_does_not_come_back_without_pages() {
        let wb = Recorder::default();
        ended(&wb, 7, MANY, written(7));
        assert_eq!(rest(&wb), None);
        assert!(!wb.left.get());
        assert!(!wb.calls.borrow().contains(&"sum"), "something was counted");
    }

    #[test]
    fn inodes_without_counted_pages_are_left_to_others() {
        let wb = Recorder {
            queue: true,
            ..with(0)
        };
        ended(&wb, 0, MANY, written(0));
        assert_eq!(rest(&wb), None);
        assert!(!wb.left.get());
    }

    #[test]
    fn pages_that_are_not_in_the_sum_request_no_round() {
        let wb = Recorder {
            queue: true,
            excess: MANY,
            ..with(0)
        };
        wb.test_and_set(Bit::Pending);
        assert_eq!(consume(&wb), Some(0));
        ended(&wb, 0, MANY, written(0));
        assert_eq!(rest(&wb), None);
    }

    #[test]
    fn queued_inodes_are_looked_at_without_a_request() {
        let wb = Recorder {
            queue: true,
            ..with(1)
        };
        assert_eq!(rest(&wb), Some(DELAY_MS));
    }

    #[test]
    fn the_next_round_writes_what_a_round_leaves() {
        let wb = with_queue();
        ended(&wb, 7, MANY, written(7));
        wb.pass(DELAY_MS);
        assert_eq!(consume(&wb), Some(7));
    }

    #[test]
    fn counted_pages_that_were_not_found_are_looked_for_again() {
        let wb = Recorder::default();
        ended(&wb, 7, MANY, written(3));
        assert_eq!(rest(&wb), Some(DELAY_MS));
        wb.pass(DELAY_MS);
        assert_eq!(consume(&wb), Some(0));
        ended(&wb, 0, MANY, written(0));
        assert_eq!(wb.kick_at(), MANY);
        assert_eq!(rest(&wb), None);
    }

    #[test]
    fn only_the_first_writer_above_the_threshold_kicks() {
        let wb = with(MANY);
        assert_eq!(ask(&wb), Some(Run::Now));
        assert!(wb.pending.get());
        let calls = ["order", "pending?", "left?", "about", "set pending"];
        assert_eq!(*wb.calls.borrow(), calls);
        wb.calls.take();
        assert_eq!(ask(&wb), None);
        assert_eq!(*wb.calls.borrow(), ["order", "pending?"]);
    }

    #[test]
    fn a_round_for_a_busy_device_is_tried_again_soon() {
        let round = Ended {
            again_ms: Some(5),
            ..written(50)
        };
        for noted in [false, true] {
            let wb = with(99);
            if noted {
                ask(&wb);
            }
            ended(&wb, 99, MANY, round);
            assert_eq!(rest(&wb), Some(5));
        }
        // An earlier due time is kept.
        let wb = with(99);
        ask(&wb);
        wb.pass(DELAY_MS - 1);
        ended(&wb, 99, MANY, round);
        assert_eq!(rest(&wb), Some(1));
    }

    #[test]
    fn writers_kick_again_after_a_slow_device_is_idle() {
        let wb = with(0);
        let round = Ended {
            again_ms: Some(5),
            ..written(99)
        };
        ended(&wb, 99, MANY, round);
        assert_eq!(wb.kick_at(), i64::MAX);
        wb.pass(5);
        assert_eq!(consume(&wb), Some(0));
        ended(&wb, 0, MANY, written(0));
        assert_eq!(wb.kick_at(), MANY);
        assert_eq!(rest(&wb), None);
    }

    #[test]
    fn no_writer_kicks_while_a_round_runs() {
        let wb = with(MANY);
        ask(&wb);
        assert_eq!(consume(&wb), Some(MANY));
        assert_eq!(ask(&wb), Some(Run::Later));
        assert!(!wb.pending.get());
    }

    #[test]
    fn a_round_is_followed_by_another_if_enough_pages_have_come() {
        let wb = with(MANY);
        ended(&wb, 50, MANY, written(50));
        assert_eq!(rest(&wb), Some(0));
        let wb = with(MANY - 1);
        ended(&wb, 50, MANY, written(50));
        assert_eq!(rest(&wb), None);
    }

    #[test]
    fn pages_that_a_round_leaves_do_not_begin_the_next() {
        let wb = with(MANY);
        ended(&wb, 50, MANY, written(20));
        assert_eq!(wb.kick_at(), MANY + 30);
        assert_eq!(rest(&wb), Some(DELAY_MS));
        // The pages may be gone meanwhile.
        let wb = with(10);
        ended(&wb, 50, MANY, written(20));
        assert_eq!(wb.kick_at(), MANY + 10);
    }

    #[test]
    fn pages_that_cannot_be_written_are_tried_after_each_delay() {
        let wb = Recorder {
            queue: true,
            ..with(2 * MANY)
        };
        ended(&wb, 2 * MANY, MANY, written(0));
        assert_eq!(ask(&wb), None);
        assert_eq!(rest(&wb), Some(DELAY_MS));
        wb.pass(DELAY_MS);
        assert_eq!(consume(&wb), Some(2 * MANY));
        ended(&wb, 2 * MANY, MANY, written(1));
        assert_eq!(wb.kick_at(), 3 * MANY - 1);
    }

    #[test]
    fn requests_are_taken_before_the_sum_is_read() {
        let wb = with(7);
        wb.pending.set(true);
        wb.left.set(true);
        assert_eq!(consume(&wb), Some(7));
        assert!(!wb.pending.get() && !wb.left.get());
        assert_eq!(
            *wb.calls.borrow(),
            ["clear pending", "left?", "clear left", "sum"]
        );
    }

    #[test]
    fn writers_kick_at_16_mib_and_earlier_if_memory_is_short() {
        for page_shift in 12..=16 {
            assert_eq!(super::kick_at(page_shift, u64::MAX) << page_shift, 16 << 20);
        }
        assert_eq!(super::kick_at(12, 40), 10);
        assert_eq!(super::kick_at(12, 0), 1);
    }
}
