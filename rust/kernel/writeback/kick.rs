// SPDX-License-Identifier: GPL-2.0

//! How a `RWF_DONTCACHE` writer requests a round from the flusher.
//!
//! A writer that has dirtied dropbehind pages sets one of two bits of the wb, and queues the
//! flusher: immediately if enough pages have gathered, after [`DELAY_MS`] otherwise. A writer that
//! finds this bit set does nothing, because the flusher that takes the bit will see that writer's
//! pages too. This depends on two orders:
//!
//! - a writer counts its pages **before** it looks at the bits ([`ask`]);
//! - the flusher takes the bits **before** it reads the counter ([`consume`]).
//!
//! If a writer looks at the bit while the flusher takes it, at least one of them sees what the
//! other did: either the writer finds the bit clear, and sets it again, or the flusher reads the
//! counter after the writer has counted, and its round covers the pages. This is the pattern of
//! store buffering: it needs a full barrier on both sides. The flusher's barrier is its
//! read-modify-write of the bit; the writer's is [`Wb::order_after_dirtying`].
//!
//! | bit | set | taken by [`consume`] |
//! | --- | --- | --- |
//! | pending | by a writer, or at the end of a round | always |
//! | delayed | by a writer of few pages, a round, or before a sleep | if due, or with pending |
//!
//! A context that finds the delayed bit clear sets when the pages are due, then the bit, and then
//! queues the flusher for that time. The flusher does so before it sleeps beside pages. A round
//! that leaves pages may set an earlier time. If several contexts do so at once, any of the times
//! may remain: none is more than [`DELAY_MS`] away.
//!
//! While a round runs, the threshold is infinite: a writer may request a round after the delay, but
//! not one at once. The end of the round sets the threshold again ([`ended`]), and requests the
//! next round itself if enough pages have come meanwhile. The threshold stays infinite if the round
//! could write nothing, or a slow device has enough: then the flusher comes back by itself.

use super::round::Ended;

/// For how long a dirty dropbehind page waits for more pages, in milliseconds. Each round costs a
/// wake-up, and the more dirty pages it finds the larger are the device's writes.
pub const DELAY_MS: u32 = 200;

/// How many dirty dropbehind pages of `1 << page_shift` bytes are many: 16 MiB.
pub(crate) const fn many(page_shift: u32) -> i64 {
    (16 << 20) >> page_shift
}

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
    quarter.min(many(page_shift)).max(1)
}

/// A bit of a wb's state (`enum wb_state`).
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Bit {
    /// A round is requested now (`WB_start_dontcache`).
    Pending,
    /// Dirty dropbehind pages are to be written without a kick (`WB_dontcache_delayed`). Either a
    /// round has left them, they are few, or a flusher that was about to sleep has found them.
    Delayed,
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

    /// Sets when the delayed pages are due: in so many milliseconds.
    fn set_due_in(&self, milliseconds: u32);

    /// In how many milliseconds the delayed pages are due. None if they are due now. Reads the time
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
#[inline]
pub fn is_asked(wb: &impl Wb) -> bool {
    wb.order_after_dirtying();
    wb.test(Bit::Pending) || wb.test(Bit::Delayed) && wb.about_dirty() < wb.kick_at()
}

/// Requests a round for the pages that the caller has dirtied: immediately if there are many, after
/// the delay otherwise.
///
/// Returns a value only to the caller that has to queue the flusher.
///
/// C counterpart: the section of `filemap_dontcache_kick_writeback()`, which requests an immediate
/// round whenever the wb has dirty inodes.
#[inline]
pub fn ask(wb: &impl Wb) -> Option<Run> {
    if is_asked(wb) {
        return None;
    }
    if wb.about_dirty() >= wb.kick_at() {
        return (!wb.test_and_set(Bit::Pending)).then_some(Run::Now);
    }
    delay(wb).then_some(Run::Later)
}

/// Whether the flusher is to serve a request now. On a device without DONTCACHE it reads the two
/// bits and nothing else.
#[inline]
pub fn is_asked_for(wb: &impl Wb) -> bool {
    wb.test(Bit::Pending) || is_due(wb)
}

/// Whether delayed pages are due.
#[inline]
fn is_due(wb: &impl Wb) -> bool {
    wb.test(Bit::Delayed) && wb.due_in().is_none()
}

/// Takes the requests and returns how many pages the round is to write: the exact count of dirty
/// dropbehind pages, which may be zero. None if the caller has nothing to do.
///
/// The requests are taken first, so that a request that arrives during the round starts another
/// round.
///
/// C counterpart: the first half of `wb_check_start_dontcache()`.
// Not inlined, it costs 86 instructions instead of 77. C's costs 72.
#[inline(always)]
pub fn consume(wb: &impl Wb) -> Option<i64> {
    if !wb.test_and_clear(Bit::Pending) && !is_due(wb) {
        return None;
    }
    // The round serves both requests.
    let pages = if wb.test(Bit::Delayed) && wb.test_and_clear(Bit::Delayed) {
        // The round that set the bit may have left the threshold infinite. So a round follows even
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

/// Sets the delayed bit for pages that the caller has counted. Returns whether it was clear. The
/// caller has found it clear, or the pages were too many for it a moment ago: then the pages that
/// it stands for may wait for the delay once more.
pub fn delay(wb: &impl Wb) -> bool {
    // Before the bit: otherwise a flusher that runs just then finds the pages due.
    wb.set_due_in(DELAY_MS);
    !wb.test_and_set(Bit::Delayed)
}

/// Ends a round that was to write `counted` pages. Writers kick again at `kick_at` pages, plus the
/// pages that the round has left.
///
/// The next round writes what this round leaves, even if it begins before the flusher sleeps. Pages
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
        if !wb.test_and_set(Bit::Delayed) || wb.due_in().is_some_and(|due| due > milliseconds) {
            wb.set_due_in(milliseconds);
        }
    } else if counted > 0 && (counted > round.pages || wb.has_queue()) && !wb.test(Bit::Delayed) {
        delay(wb);
    }
    // Enough pages may have come during the round, and there may be no later writer that requests a
    // round for them: the last one may have read the infinite threshold. The sum confirms it: the
    // approximate number may stay too high, and then the flusher would run again and again.
    let enough = wb.kick_at();
    if wb.about_dirty() >= enough && wb.dontcache_dirty() >= enough {
        wb.test_and_set(Bit::Pending);
    }
}

/// The flusher is about to sleep. Returns in how many milliseconds it has to run again, if pages
/// are left, or queued inodes have dirty dropbehind pages. A page may have been locked or its inode
/// busy, and there may never be another write to it. Without DONTCACHE no sum is computed.
///
/// No C counterpart: in C such pages wait for periodic writeback.
#[inline]
pub fn before_sleep(wb: &impl Wb) -> Option<u32> {
    // A rescuer may have skipped a request, or enough pages may have come beside the last round.
    if wb.test(Bit::Pending) {
        return Some(0);
    }
    if !wb.test(Bit::Delayed) {
        // A rescuer may have queued the inodes for other work.
        if !wb.has_queue() || wb.dontcache_dirty() <= 0 {
            return None;
        }
        delay(wb);
    }
    Some(wb.due_in().unwrap_or(0))
}
