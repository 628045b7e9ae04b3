// SPDX-License-Identifier: GPL-2.0

//! When the flusher begins a round for DONTCACHE writers.
//!
//! Each round costs a wake-up, and the more it finds the larger are the device's writes. So a wb
//! lets dirty dropbehind pages gather, and a round begins when the first of these holds:
//!
//! - there are [`KickAt::pages`] of them: what the device writes in [`BANDWIDTH_MS`], and more, in
//!   proportion, while the delay is longer than the least; or the wb's [`Share`] of that, for the
//!   device is not to rest while several wbs wait until each has as much;
//! - the first of them has waited for [`Pace::delay_ms`].
//!
//! While a round runs, those that it has found do not count.
//!
//! The delay follows the device, as a read-ahead window follows a reader: it is long at first,
//! halved where what was written last came out in large writes before anybody had waited for as
//! long, and doubled where they were small, which gathering for longer makes larger. While both its
//! bounds are the same, which they are unless somebody sets them, it stays what it is.
//!
//! Where the device's writes are so small that it is its requests that count, as those of random
//! writers, no more is given to it than it does in a while: what is in its queue gets no neighbours
//! any more. Nor is it given much before it was seen to write at all.
//!
//! Times are in milliseconds, pages are those of the page cache.

/// Where a device's writes have less than this, in KiB, their number is what they cost, and it is
/// not given more than it can do.
pub const TINY_KIB: u64 = 32;

/// A device with less to do than this is given more.
pub const QUEUED_MS: u64 = 40;

/// The flusher comes back when the device has this left to do, for it may take as long to run.
pub const SLACK_MS: u64 = 20;

/// Less time than this, in microseconds, tells nothing of what a device can do.
pub const TELLING_US: u64 = 5_000;

/// However little a device can do, it is given so many pages at a time; and fewer tell nothing of
/// how much that is.
pub const LEAST_QUEUED: u32 = 32;

/// For how long a device is left alone that has enough to do, if nobody has seen yet what it makes
/// of it: until there is something to see.
pub const UNSEEN_MS: u32 = (TELLING_US / 1000) as u32;

/// A device that has more than [`QUEUED_MS`] to do is left alone for no longer than this.
pub const BUSY_MS: u64 = 50;

/// The pages that are written at once are what the device writes in this time, by the estimates of
/// its wbs, while the delay is the shortest.
pub const BANDWIDTH_MS: i64 = 32;

/// Inodes beyond these are not counted, whatever the bounds are: the lists are locked meanwhile.
const COUNTED: usize = 255;

/// What a wb's pace is kept within, for the whole system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Pages that are left to wait at least, where memory is not short.
    pub least_pages: i64,
    /// ... and at most.
    pub most_pages: i64,
    /// ... and, within the most, for each inode that waits for a round: or many writers would each
    /// have few pages in it.
    pub inode_pages: i64,
    /// The delay is never shorter than this.
    pub least_delay_ms: u32,
    /// ... nor longer than this, which it is at first.
    pub most_delay_ms: u32,
}

/// What they are unless somebody sets them, with pages of 4 KiB.
pub const BOUNDS: Bounds = Bounds::with_pages(12);

/// Largest size that may be set, in pages of `1 << page_shift` bytes: 1 GiB. Larger ones would
/// overflow, or have nothing to do with a kick.
pub const fn pages_limit(page_shift: u32) -> i64 {
    (1 << 30) >> page_shift
}

/// Longest delay that may be set.
pub const DELAY_LIMIT_MS: u32 = 10_000;

impl Bounds {
    /// What they are unless somebody sets them, with pages of `1 << page_shift` bytes: from 4 MiB
    /// on, 8 MiB at most, 2 MiB for each inode, and 200 ms. A shorter delay where the device's
    /// writes are large anyway was tried: it saves memory, and costs requests.
    pub const fn with_pages(page_shift: u32) -> Self {
        Self {
            least_pages: (4 << 20) >> page_shift,
            most_pages: (8 << 20) >> page_shift,
            inode_pages: (2 << 20) >> page_shift,
            least_delay_ms: 200,
            most_delay_ms: 200,
        }
    }

    /// How many inodes need be counted: with more of them no more is to gather.
    pub fn most_inodes(&self) -> usize {
        let inodes = self.most_pages.checked_div(self.inode_pages).unwrap_or(0);
        usize::try_from(inodes).unwrap_or(0).min(COUNTED) + 1
    }

    /// Whether a wb can be kept within them, with pages of `1 << page_shift` bytes.
    pub fn are_valid(&self, page_shift: u32) -> bool {
        1 <= self.least_pages
            && self.least_pages <= self.most_pages
            && self.most_pages <= pages_limit(page_shift)
            && 0 <= self.inode_pages
            && self.inode_pages <= self.most_pages
            && 1 <= self.least_delay_ms
            && self.least_delay_ms <= self.most_delay_ms
            && self.most_delay_ms <= DELAY_LIMIT_MS
    }
}

/// What a device has written, since the wb looked last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceWrites {
    /// How many writes.
    pub writes: u64,
    /// How much, in KiB.
    pub kib: u64,
    /// How much one write can have.
    pub largest_kib: u64,
    /// Whether it says that it counts its writes, so that they can be waited for. It may count them
    /// without saying so.
    pub counts: bool,
}

/// How much a large write has, in KiB, on a device that takes `largest_kib` at once.
pub fn request_kib(largest_kib: u64) -> u64 {
    largest_kib.clamp(1, 512)
}

/// From how many pages of dirty dropbehind folios on a writer kicks the flusher.
///
/// # Examples
///
/// ```
/// use kernel::writeback::pace::{Bounds, Pace};
///
/// // 32 writers of files of their own, with pages of 4 KiB, on a drive that writes 100 MB/s.
/// let bounds = Bounds::with_pages(12);
/// let pace = Pace { delay_ms: bounds.least_delay_ms, ..Pace::new(&bounds) };
/// let at = pace.kick_at(&bounds, 25_000, 100_000);
/// assert_eq!(at.with_inodes(&bounds, 1) << 12, 4 << 20);
/// assert_eq!(at.with_inodes(&bounds, 32) << 12, 8 << 20);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KickAt {
    /// With one inode.
    pub pages: i64,
    /// With however many.
    pub most: i64,
}

/// The part of its device that is a wb's, by what each wb of it that has something dirty is
/// believed to write, in pages a second.
///
/// # Examples
///
/// ```
/// use kernel::writeback::pace::Share;
///
/// // One of ten wbs of a drive, each of which writes as much as the others.
/// let tenth = Share { own: 2_500, all: 25_000 };
/// assert_eq!(tenth.of(2048, 0), 204);
/// // There are to be two requests of 512 KiB.
/// assert_eq!(tenth.of(2048, 128), 256);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// What this wb does.
    pub own: u64,
    /// What all of them do, this one as well.
    pub all: u64,
}

impl Share {
    /// The wb's part of so many pages, but no less than two requests of `request` pages, if there
    /// are as many.
    pub fn of(self, pages: i64, request: i64) -> i64 {
        u64::try_from(pages)
            .unwrap_or(0)
            .saturating_mul(self.own)
            .checked_div(self.all)
            .filter(|_| self.own > 0)
            .and_then(|part| i64::try_from(part).ok())
            .unwrap_or(pages)
            .max(request.saturating_mul(2).max(1))
            .min(pages)
    }
}

impl KickAt {
    /// With so many inodes that wait for a round.
    pub fn with_inodes(self, bounds: &Bounds, inodes: u32) -> i64 {
        let pages = bounds.inode_pages.saturating_mul(inodes.into());
        pages.min(self.most).max(self.pages)
    }
}

/// What may be given to a device now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// So many pages at most.
    Pages(i64),
    /// None: for so many milliseconds it has enough to do.
    Busy(u32),
}

/// What a wb has had written since a moment, and what its device still has to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Pages that were written.
    pub written: i64,
    /// Pages under writeback.
    pub under_way: i64,
    /// How long that took, in microseconds.
    pub elapsed_us: u64,
}

impl Progress {
    /// Whether it is long enough to say what a device can do.
    fn tells(self) -> bool {
        self.elapsed_us >= TELLING_US
    }

    /// Whether it says what the device can do now. Progress had better begin anew then: a device
    /// may do its first writes at once, and the others as fast as it can.
    pub fn is_enough(self) -> bool {
        self.tells() && self.written >= LEAST_QUEUED.into()
    }
}

/// What a device whose writes may be tiny is given at most at a time, of a portion of `most` pages:
/// what it can do may be much less than it seemed to be.
fn a_part(most: i64) -> i64 {
    most.saturating_add(1) / 4
}

/// The pace of a wb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// For how long a dirty dropbehind page waits for others.
    pub delay_ms: u32,
    /// What a write of the device had on average when that was looked at last, in KiB. Zero if it
    /// never was.
    pub average_kib: u32,
    /// Pages that the device writes in [`QUEUED_MS`], while its writes are tiny, as far as was
    /// seen: all that it can if it had more of them than that. Zero if it never was.
    pub queued_pages: u32,
}

impl Pace {
    /// That of a wb which has written nothing yet.
    pub fn new(bounds: &Bounds) -> Self {
        Self {
            delay_ms: bounds.most_delay_ms,
            average_kib: 0,
            queued_pages: 0,
        }
    }

    /// Whether the device's writes are so small that their number is what they cost.
    fn is_tiny(self) -> bool {
        (1..TINY_KIB).contains(&self.average_kib.into())
    }

    fn with_average(self, device: DeviceWrites) -> Self {
        let average = device.kib.checked_div(device.writes);
        let number = |kib: u64| u32::try_from(kib.max(1)).unwrap_or(u32::MAX);
        Self {
            average_kib: average.map_or(self.average_kib, number),
            ..self
        }
    }

    /// That after a look at what the device has written. A write is small below three quarters of a
    /// [`request`](request_kib), and large from seven eighths on. `by_size` is for a round that
    /// began because there were enough pages: where their time was up, a shorter one would have had
    /// less.
    #[must_use]
    pub fn after(self, bounds: &Bounds, device: DeviceWrites, by_size: bool) -> Self {
        let largest = request_kib(device.largest_kib);
        let eighths = device.kib.saturating_mul(8);
        let of = |kib: u64| device.writes.saturating_mul(kib);
        let delay_ms = if device.writes == 0 {
            self.delay_ms
        } else if eighths < of(largest * 6) {
            self.delay_ms.saturating_mul(2)
        } else if by_size && eighths >= of(largest * 7) {
            self.delay_ms / 2
        } else {
            self.delay_ms
        };
        Self {
            // Not clamp(), which panics where somebody changes both bounds meanwhile.
            delay_ms: delay_ms
                .min(bounds.most_delay_ms)
                .max(bounds.least_delay_ms),
            ..self.with_average(device)
        }
    }

    /// What may be given to a device that has written `device` since it was looked at last, with
    /// which the wb has had `progress`: `most` pages, or less where its writes are tiny, or may be,
    /// for nobody has seen any. What was seen of the device is remembered. Where it is given
    /// nothing, as many pages as make a kick are to gather besides those that there are.
    pub fn room(
        self,
        device: DeviceWrites,
        progress: impl FnOnce() -> Progress,
        most: i64,
    ) -> (Self, Room) {
        let pace = self.with_average(device);
        if pace.average_kib == 0 && device.counts {
            return self.room_unseen(progress().under_way, most, UNSEEN_MS);
        }
        if !pace.is_tiny() {
            return (self, Room::Pages(most));
        }
        let progress = progress();
        if self.queued_pages == 0 && !progress.tells() {
            return self.room_unseen(progress.under_way, most, UNSEEN_MS);
        }
        if self.queued_pages == 0 && progress.written <= 0 {
            return self.room_unseen(progress.under_way, most, BUSY_MS as u32);
        }
        self.room_for_tiny(progress, most)
    }

    /// The same for a device of which nobody knows yet what it makes of the pages `under_way`: it
    /// is left alone for `wait_ms` if they are many.
    fn room_unseen(self, under_way: i64, most: i64, wait_ms: u32) -> (Self, Room) {
        let room = if under_way < most / 2 {
            Room::Pages(a_part(most))
        } else {
            Room::Busy(wait_ms)
        };
        (self, room)
    }

    /// The same for a device whose writes are tiny.
    fn room_for_tiny(self, progress: Progress, most: i64) -> (Self, Room) {
        let number = |pages: i64| u64::try_from(pages).unwrap_or(0);
        // What it did in [`QUEUED_MS`] lately, if that can be told.
        let seen = number(progress.written)
            .saturating_mul(QUEUED_MS)
            .checked_div(progress.elapsed_us / 1000)
            .filter(|_| progress.written > 0 && progress.tells())
            .map(|pages| u32::try_from(pages.max(1)).unwrap_or(u32::MAX));
        let drained_in = number(progress.under_way)
            .saturating_mul(QUEUED_MS)
            .checked_div(seen.unwrap_or(self.queued_pages).into())
            .unwrap_or(0);
        let (queued_pages, room) = if drained_in <= QUEUED_MS {
            // It may be able to do more, for it may have had nothing else to do.
            let seen = seen.filter(|_| progress.is_enough()).unwrap_or(0);
            let queued_pages = self.queued_pages.max(seen);
            let known = match queued_pages {
                0 => i64::MAX,
                pages => pages.max(LEAST_QUEUED).into(),
            };
            (queued_pages, Room::Pages(a_part(most).min(known)))
        } else {
            let wait_ms = (drained_in - SLACK_MS).min(BUSY_MS) as u32;
            (seen.unwrap_or(self.queued_pages), Room::Busy(wait_ms))
        };
        let pace = Self {
            queued_pages,
            ..self
        };
        (pace, room)
    }

    /// The same after a device was found with nothing to do: it may be able to do more than it was
    /// given.
    #[must_use]
    pub fn after_idling(self) -> Self {
        Self {
            queued_pages: self.queued_pages.saturating_mul(2),
            ..self
        }
    }

    /// Whether pages are to gather besides those that a round has found even when it has ended, for
    /// these may stay where they are.
    pub fn may_be_busy(self, under_way: i64) -> bool {
        self.is_tiny() && under_way > 0
    }

    /// Where the next kick comes, if the wb has the device to itself. That writes `bandwidth` pages
    /// a second, and background writeback begins at `background` dirty pages. No more than a
    /// quarter of these wait for a kick, unless the device is busy: see [`Self::room`].
    pub fn kick_at(self, bounds: &Bounds, bandwidth: u64, background: u64) -> KickAt {
        let pages = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let most = bounds.most_pages.min(pages(background / 4)).max(1);
        let at_once = (pages(bandwidth).saturating_mul(BANDWIDTH_MS) / 1000)
            .min(bounds.most_pages)
            .max(bounds.least_pages);
        let grown =
            at_once.saturating_mul(self.delay_ms.into()) / i64::from(bounds.least_delay_ms.max(1));
        KickAt {
            pages: grown.min(most),
            most,
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const BACKGROUND: u64 = 100_000;

    /// Bounds that leave something to be decided.
    const BOUNDS: Bounds = Bounds {
        inode_pages: 256,
        least_delay_ms: 100,
        ..super::BOUNDS
    };

    const SILENT: DeviceWrites = DeviceWrites {
        writes: 0,
        kib: 0,
        largest_kib: 512,
        counts: true,
    };

    fn waits(delay_ms: u32) -> Pace {
        Pace {
            delay_ms,
            ..Pace::new(&BOUNDS)
        }
    }

    fn device(writes: u64, pages: u64) -> DeviceWrites {
        DeviceWrites {
            writes,
            kib: pages * 4,
            largest_kib: 1280,
            counts: true,
        }
    }

    fn delay(pace: Pace, device: DeviceWrites) -> u32 {
        pace.after(&BOUNDS, device, true).delay_ms
    }

    #[test]
    fn pages_of_any_size_wait_for_as_many_bytes() {
        for page_shift in 12..=16 {
            let bounds = Bounds::with_pages(page_shift);
            assert!(bounds.are_valid(page_shift));
            let beyond = Bounds {
                most_pages: pages_limit(page_shift) + 1,
                ..bounds
            };
            assert!(!beyond.are_valid(page_shift));
            assert_eq!(bounds.most_pages << page_shift, 8 << 20);
        }
    }

    #[test]
    fn the_bounds_are_valid() {
        assert!(BOUNDS.are_valid(12));
        for wrong in [
            Bounds {
                least_pages: 0,
                ..BOUNDS
            },
            Bounds {
                least_pages: BOUNDS.most_pages + 1,
                ..BOUNDS
            },
            Bounds {
                most_pages: pages_limit(12) + 1,
                ..BOUNDS
            },
            Bounds {
                inode_pages: -1,
                ..BOUNDS
            },
            Bounds {
                inode_pages: BOUNDS.most_pages + 1,
                ..BOUNDS
            },
            Bounds {
                least_delay_ms: 0,
                ..BOUNDS
            },
            Bounds {
                least_delay_ms: BOUNDS.most_delay_ms + 1,
                ..BOUNDS
            },
            Bounds {
                most_delay_ms: DELAY_LIMIT_MS + 1,
                ..BOUNDS
            },
        ] {
            assert!(!wrong.are_valid(12), "{wrong:?}");
        }
    }

    #[test]
    fn small_writes_lengthen_the_delay_and_large_ones_shorten_it() {
        let bounds = Bounds {
            least_delay_ms: 20,
            ..BOUNDS
        };
        let mut pace = Pace::new(&bounds);
        for expected in [100, 50, 25, 20, 20] {
            pace = pace.after(&bounds, device(10, 10 * 112), true);
            assert_eq!(pace.delay_ms, expected);
        }
        for expected in [40, 80, 160, 200, 200] {
            pace = pace.after(&bounds, device(10, 10 * 95), true);
            assert_eq!(pace.delay_ms, expected);
        }
    }

    #[test]
    fn what_has_waited_for_as_long_is_no_reason_to_wait_for_less() {
        let pace = Pace::new(&BOUNDS);
        let large = device(10, 10 * 128);
        assert_eq!(pace.after(&BOUNDS, large, false).delay_ms, 200);
        assert_eq!(pace.after(&BOUNDS, large, true).delay_ms, 100);
    }

    #[test]
    fn what_is_neither_keeps_it() {
        let pace = waits(110);
        assert_eq!(delay(pace, device(10, 10 * 96)), 110);
        assert_eq!(delay(pace, device(10, 10 * 111)), 110);
        assert_eq!(delay(pace, device(0, 0)), 110);
    }

    #[test]
    fn a_device_of_small_writes_is_measured_by_its_own() {
        let pace = waits(200);
        let small = |pages: u64| DeviceWrites {
            writes: 10,
            kib: pages * 4,
            largest_kib: 32,
            counts: true,
        };
        assert_eq!(delay(waits(100), small(59)), 200);
        assert_eq!(delay(pace, small(60)), 200);
        assert_eq!(delay(pace, small(70)), 100);
    }

    #[test]
    fn the_faster_the_device_the_more_is_gathered() {
        let pace = waits(100);
        let pages = |bandwidth| pace.kick_at(&BOUNDS, bandwidth, BACKGROUND).pages;
        assert_eq!(pages(0), 1024);
        assert_eq!(pages(32_000), 1024);
        assert_eq!(pages(50_000), 1600);
        assert_eq!(pages(u64::MAX), 2048);
    }

    #[test]
    fn small_writes_gather_more() {
        let pages = |delay_ms| waits(delay_ms).kick_at(&BOUNDS, 0, BACKGROUND).pages;
        assert_eq!(pages(100), 1024);
        assert_eq!(pages(150), 1536);
        assert_eq!(pages(200), 2048);
    }

    #[test]
    fn the_average_is_kept_while_nothing_is_written() {
        let pace = waits(100).after(&BOUNDS, device(100, 31 * 25), false);
        assert_eq!(pace.average_kib, 31);
        assert_eq!(pace.after(&BOUNDS, device(0, 0), true).average_kib, 31);
    }

    const MOST: i64 = 1023;

    /// What a device has room for of which so many writes are known, in 20 ms.
    fn room(pace: Pace, device: DeviceWrites, written: i64, under_way: i64) -> (Pace, Room) {
        let progress = Progress {
            written,
            under_way,
            elapsed_us: 20_000,
        };
        pace.room(device, || progress, MOST)
    }

    #[test]
    fn a_device_of_tiny_writes_is_not_given_more_than_it_can_do() {
        let pace = |average_kib| Pace {
            average_kib,
            ..Pace::new(&BOUNDS)
        };
        let of =
            |average_kib, written, under_way| room(pace(average_kib), SILENT, written, under_way).1;
        // 3 pages a millisecond.
        assert_eq!(of(5, 60, 120), Room::Pages(120));
        assert_eq!(of(5, 60, 150), Room::Busy(30));
        assert_eq!(of(5, 60, 1000), Room::Busy(50));
        assert_eq!(of(32, 60, 1000), Room::Pages(MOST));
        for (written, under_way) in [(0, 510), (-1, 510), (31, 0), (31, -1), (500, 0)] {
            assert_eq!(of(5, written, under_way), Room::Pages(256));
        }
        for written in [0, -1] {
            assert_eq!(of(5, written, 511), Room::Busy(50));
        }
        // What it writes now counts, if it is known.
        let now = |kib: u64| room(pace(100), device(10, kib * 10 / 4), 60, 150).1;
        assert_eq!((now(16), now(64)), (Room::Busy(30), Room::Pages(MOST)));
    }

    #[test]
    fn a_device_that_was_never_seen_to_write_is_given_little() {
        let new = Pace::new(&BOUNDS);
        assert_eq!(room(new, SILENT, 0, 510), (new, Room::Pages(256)));
        assert_eq!(room(new, SILENT, 0, 511), (new, Room::Busy(5)));
        // Large writes need not be counted.
        assert_eq!(
            room(new, device(1, 128), 128, 511),
            (new, Room::Pages(MOST))
        );
        // Nor is there a wait for what cannot be seen.
        let hidden = DeviceWrites {
            counts: false,
            ..SILENT
        };
        assert_eq!(room(new, hidden, 0, 511), (new, Room::Pages(MOST)));
    }

    #[test]
    fn what_a_device_wrote_is_known_even_if_it_does_not_say_that_it_counts() {
        let silently = DeviceWrites {
            counts: false,
            ..device(10, 10)
        };
        let (_, room) = room(Pace::new(&BOUNDS), silently, 60, 150);
        assert_eq!(room, Room::Busy(30));
    }

    #[test]
    fn a_device_of_tiny_writes_is_given_little_until_it_has_had_time_to_do_some() {
        let soon = |pace: Pace, under_way| {
            let progress = Progress {
                written: 1,
                under_way,
                elapsed_us: 4_999,
            };
            pace.room(device(1, 1), || progress, MOST)
        };
        let new = Pace::new(&BOUNDS);
        assert_eq!(soon(new, 510), (new, Room::Pages(256)));
        assert_eq!(soon(new, 511), (new, Room::Busy(5)));
    }

    /// Whoever has seen it do much does not wait for the next that there is to see.
    #[test]
    fn a_fast_device_is_not_left_alone() {
        let slow = Pace {
            average_kib: 5,
            queued_pages: 8,
            ..Pace::new(&BOUNDS)
        };
        for pace in [slow, waits(200).with_average(device(1, 1))] {
            let (seen, _) = room(pace, SILENT, 2000, 10);
            assert_eq!(seen.queued_pages, 4000);
            let soon = |under_way| {
                let progress = || Progress {
                    written: 1,
                    under_way,
                    elapsed_us: 4_999,
                };
                seen.room(SILENT, progress, MOST).1
            };
            assert_eq!(soon(4000), Room::Pages(256));
            assert_eq!(soon(4100), Room::Busy(21));
        }
        // It has done less because there was less to do.
        let (same, _) = room(waits(200).with_average(device(1, 1)), SILENT, 31, 0);
        assert_eq!(same.queued_pages, 0);
        let most = Pace {
            queued_pages: 4000,
            ..slow
        };
        assert_eq!(room(most, SILENT, 60, 10).0, most);
    }

    /// What it has done in a burst says nothing of what it does afterwards.
    #[test]
    fn progress_begins_anew_where_it_says_enough() {
        let progress = |written, elapsed_us| Progress {
            written,
            under_way: 0,
            elapsed_us,
        };
        assert!(progress(32, 5_000).is_enough());
        assert!(!progress(31, 5_000).is_enough());
        assert!(!progress(32, 4_999).is_enough());
    }

    #[test]
    fn what_a_device_can_do_is_remembered() {
        let pace = Pace {
            average_kib: 5,
            ..Pace::new(&BOUNDS)
        };
        let (pace, _) = room(pace, SILENT, 60, 1000);
        assert_eq!(pace.queued_pages, 120);
        assert_eq!(room(pace, SILENT, 0, 0), (pace, Room::Pages(120)));
        assert_eq!(room(pace, SILENT, 0, 240), (pace, Room::Busy(50)));
        let slow = Pace {
            queued_pages: 1,
            ..pace
        };
        assert_eq!(room(slow, SILENT, 0, 0).1, Room::Pages(32));
        // Too soon to tell.
        let soon = || Progress {
            written: 1,
            under_way: 100,
            elapsed_us: 4_999,
        };
        assert_eq!(pace.room(SILENT, soon, MOST), (pace, Room::Pages(120)));
        let soon = || Progress {
            written: 1,
            under_way: 1000,
            elapsed_us: 4_999,
        };
        assert_eq!(pace.room(SILENT, soon, MOST), (pace, Room::Busy(50)));
    }

    /// A stall, and then a device that does all it is given before anybody looks.
    #[test]
    fn a_device_that_stalled_is_soon_given_as_much_as_before() {
        let mut pace = Pace {
            average_kib: 5,
            queued_pages: 1,
            ..Pace::new(&BOUNDS)
        };
        let mut rounds = 0;
        while room(pace, SILENT, 0, 0).1 != Room::Pages(256) {
            pace = pace.after_idling();
            rounds += 1;
        }
        assert_eq!(rounds, 8);
        let most = Pace {
            queued_pages: u32::MAX,
            ..pace
        };
        assert_eq!(most.after_idling(), most);
    }

    #[test]
    fn wbs_that_share_a_device_gather_together_what_one_would() {
        let alone = Share {
            own: 30_000,
            all: 30_000,
        };
        assert_eq!(alone.of(2048, 128), 2048);
        let quarter = Share {
            all: 120_000,
            ..alone
        };
        assert_eq!(quarter.of(2048, 128), 512);
        // Nobody gathers less than two requests, or more than a wb alone.
        let stale = Share { all: 100, ..alone };
        assert_eq!(stale.of(2048, 128), 2048);
        let hundredth = Share { own: 300, ..alone };
        assert_eq!(hundredth.of(2048, 128), 256);
        assert_eq!((hundredth.of(100, 128), hundredth.of(1, 0)), (100, 1));
        // What nobody has seen says nothing.
        for all in [0, 30_000] {
            assert_eq!(Share { own: 0, all }.of(2048, 128), 2048);
        }
        let most = Share {
            own: u64::MAX,
            all: u64::MAX,
        };
        assert_eq!(most.of(1, 0), 1);
    }

    #[test]
    fn no_more_inodes_are_counted_than_make_a_difference() {
        assert_eq!(super::BOUNDS.most_inodes(), 5);
        let bounds = |inode_pages| Bounds {
            inode_pages,
            ..BOUNDS
        };
        assert_eq!(bounds(0).most_inodes(), 1);
        assert_eq!(bounds(1).most_inodes(), 256);
        for inode_pages in [8, 100, 256, 2048] {
            let bounds = bounds(inode_pages);
            let at = waits(100).kick_at(&bounds, 0, BACKGROUND);
            let most = bounds.most_inodes() as u32;
            assert_eq!(
                at.with_inodes(&bounds, most),
                at.with_inodes(&bounds, u32::MAX)
            );
        }
    }

    #[test]
    fn many_inodes_gather_more() {
        let at = waits(100).kick_at(&BOUNDS, 0, BACKGROUND);
        assert_eq!(at.with_inodes(&BOUNDS, 4), 1024);
        assert_eq!(at.with_inodes(&BOUNDS, 5), 1280);
        assert_eq!(at.with_inodes(&BOUNDS, u32::MAX), 2048);
    }

    #[test]
    fn where_memory_is_short_less_waits() {
        let at = waits(200).kick_at(&BOUNDS, u64::MAX, 40);
        assert_eq!((at.pages, at.with_inodes(&BOUNDS, 100)), (10, 10));
        assert_eq!(Pace::new(&BOUNDS).kick_at(&BOUNDS, 0, 0).pages, 1);
    }
}
