// SPDX-License-Identifier: GPL-2.0

//! When the flusher begins a round for DONTCACHE writers, and how much it gives to its device.
//!
//! Each round costs a wake-up, and the more dirty pages it finds the larger are the device's
//! writes. So dirty dropbehind pages gather. A round begins when there are as many as [`kick_at`]
//! reports, or when the first of them has waited for [`DELAY_MS`].
//!
//! If the device's writes are tiny, as those of random writers, the flusher gives the device no
//! more than it writes in [`QUEUED_MS`]: pages that wait in the device's queue get no neighbours.
//! The flusher also gives little to a device that it has not seen write.
//!
//! Times are in milliseconds, pages are those of the page cache.

/// For how long a dirty dropbehind page waits for more pages.
pub const DELAY_MS: u32 = 200;

/// The dirty dropbehind pages of `1 << page_shift` bytes at which a writer kicks the flusher: 8
/// MiB, but no more than a quarter of the `background` pages at which background writeback begins.
///
/// # Examples
///
/// ```
/// use kernel::writeback::pace::kick_at;
///
/// assert_eq!(kick_at(12, 1 << 20), 2048);
/// assert_eq!(kick_at(12, 400), 100);
/// ```
pub fn kick_at(page_shift: u32, background: u64) -> i64 {
    let quarter = i64::try_from(background / 4).unwrap_or(i64::MAX);
    quarter.min((8 << 20) >> page_shift).max(1)
}

/// Writes below this size are tiny: their number determines their cost, and the device gets no more
/// than it can do.
pub const TINY_KIB: u64 = 32;

/// A device with less than this in flight gets more.
pub const QUEUED_MS: u64 = 40;

/// The flusher comes back when the device has this left to do, because the flusher may take as long
/// to run.
pub const SLACK_MS: u64 = 20;

/// A shorter time, in microseconds, is too short to measure a device.
pub const TELLING_US: u64 = 5_000;

/// The least number of pages that a device gets, however slow it is. Fewer written pages are too
/// few to measure it.
pub const LEAST_QUEUED: u32 = 32;

/// For how long the flusher skips a device with enough in flight whose speed is unknown: until it
/// can be measured.
pub const UNSEEN_MS: u32 = (TELLING_US / 1000) as u32;

/// Longest time for which the flusher skips a device with more than [`QUEUED_MS`] in flight.
pub const BUSY_MS: u64 = 50;

/// What a device has written since the wb looked last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceWrites {
    /// Number of writes.
    pub writes: u64,
    /// Their size in KiB.
    pub kib: u64,
    /// Whether the device declares that it counts its writes, so that the flusher can wait for
    /// them. A device may count them without declaring it.
    pub counts: bool,
}

/// How much a device may get now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// At most so many pages.
    Pages(i64),
    /// No pages: the device has enough to do for so many milliseconds.
    Busy(u32),
}

/// What a wb has had written since a moment, and what its device has in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Pages that were written.
    pub written: i64,
    /// Pages under writeback.
    pub under_way: i64,
    /// Time since that moment, in microseconds.
    pub elapsed_us: u64,
}

impl Progress {
    /// Whether the time is long enough to measure the device.
    fn tells(self) -> bool {
        self.elapsed_us >= TELLING_US
    }

    /// Whether it measures what the device can do now. A new measurement should begin then: a
    /// device may do its first writes immediately, and the others at its own speed.
    pub fn is_enough(self) -> bool {
        self.tells() && self.written >= LEAST_QUEUED.into()
    }
}

/// The most that a device whose writes may be tiny gets at a time, of a portion of `most` pages:
/// the device may be much slower than it seemed.
fn a_part(most: i64) -> i64 {
    most.saturating_add(1) / 4
}

/// What a wb has measured of its device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// Average size of a write when that was measured last, in KiB. Zero if it never was.
    pub average_kib: u32,
    /// Pages that the device writes in [`QUEUED_MS`] while its writes are tiny, as measured. With
    /// more in flight than that, it is all the device can do. Zero if it was never measured.
    pub queued_pages: u32,
}

impl Pace {
    /// Whether the number of the device's writes determines their cost.
    fn is_tiny(self) -> bool {
        (1..TINY_KIB).contains(&self.average_kib.into())
    }

    /// The pace after the device has written `device`.
    #[must_use]
    pub fn with_average(self, device: DeviceWrites) -> Self {
        let average = device.kib.checked_div(device.writes);
        let number = |kib: u64| u32::try_from(kib.max(1)).unwrap_or(u32::MAX);
        Self {
            average_kib: average.map_or(self.average_kib, number),
            ..self
        }
    }

    /// How much a device may get that has written `device` since the last look, during the wb's
    /// `progress`: `most` pages, or less if its writes are tiny, or unknown. Returns the updated
    /// pace, too.
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

    /// The same for a device of unknown speed: the flusher skips it for `wait_ms` if many pages are
    /// `under_way`.
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
        // What the device did in [`QUEUED_MS`] lately, if that was measured.
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
            // The device may be faster, because it may have had nothing else to do.
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

    /// The pace after the device was found idle: it may be able to do more than it got.
    #[must_use]
    pub fn after_idling(self) -> Self {
        Self {
            queued_pages: self.queued_pages.saturating_mul(2),
            ..self
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const SILENT: DeviceWrites = DeviceWrites {
        writes: 0,
        kib: 0,
        counts: true,
    };

    fn device(writes: u64, pages: u64) -> DeviceWrites {
        DeviceWrites {
            writes,
            kib: pages * 4,
            counts: true,
        }
    }

    #[test]
    fn the_average_is_kept_while_nothing_is_written() {
        let pace = Pace::default().with_average(device(100, 31 * 25));
        assert_eq!(pace.average_kib, 31);
        assert_eq!(pace.with_average(device(0, 0)).average_kib, 31);
    }

    const MOST: i64 = 1023;

    /// The room of a device with so many known writes in 20 ms.
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
            ..Pace::default()
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
        // A measurement of the present size is preferred.
        let now = |kib: u64| room(pace(100), device(10, kib * 10 / 4), 60, 150).1;
        assert_eq!((now(16), now(64)), (Room::Busy(30), Room::Pages(MOST)));
    }

    #[test]
    fn a_device_that_was_never_seen_to_write_is_given_little() {
        let new = Pace::default();
        assert_eq!(room(new, SILENT, 0, 510), (new, Room::Pages(256)));
        assert_eq!(room(new, SILENT, 0, 511), (new, Room::Busy(5)));
        // Large writes need not be counted.
        assert_eq!(
            room(new, device(1, 128), 128, 511),
            (new, Room::Pages(MOST))
        );
        // The flusher does not wait for writes that it cannot see.
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
        let (_, room) = room(Pace::default(), silently, 60, 150);
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
        let new = Pace::default();
        assert_eq!(soon(new, 510), (new, Room::Pages(256)));
        assert_eq!(soon(new, 511), (new, Room::Busy(5)));
    }

    /// A device that was measured as fast does not wait for the next measurement.
    #[test]
    fn a_fast_device_is_not_left_alone() {
        let slow = Pace {
            average_kib: 5,
            queued_pages: 8,
        };
        for pace in [slow, Pace::default().with_average(device(1, 1))] {
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
        // The device did less because there was less to do.
        let (same, _) = room(Pace::default().with_average(device(1, 1)), SILENT, 31, 0);
        assert_eq!(same.queued_pages, 0);
        let most = Pace {
            queued_pages: 4000,
            ..slow
        };
        assert_eq!(room(most, SILENT, 60, 10).0, most);
    }

    /// The speed of a burst does not predict the speed after it.
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
            ..Pace::default()
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
        // Too soon to measure.
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

    /// A device stalls, and then does all that it gets before the next look.
    #[test]
    fn a_device_that_stalled_is_soon_given_as_much_as_before() {
        let mut pace = Pace {
            average_kib: 5,
            queued_pages: 1,
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
    fn writers_kick_at_8_mib_and_earlier_if_memory_is_short() {
        for page_shift in 12..=16 {
            assert_eq!(kick_at(page_shift, u64::MAX) << page_shift, 8 << 20);
        }
        assert_eq!(kick_at(12, 40), 10);
        assert_eq!(kick_at(12, 0), 1);
    }
}
