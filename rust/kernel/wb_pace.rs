// SPDX-License-Identifier: GPL-2.0

//! What a wb remembers between the rounds of its flusher for DONTCACHE writers.
//!
//! The decisions are in [`crate::writeback::kick`] and [`crate::writeback::pace`].
//!
//! C header: [`include/linux/rust_pace.h`](srctree/include/linux/rust_pace.h)

use crate::{
    backing_dev::{
        BdiWriteback,
        InodeList,
        WbStat,
        WbState, //
    },
    bindings,
    dontcache::init_cpu_batch,
    page::PAGE_SHIFT,
    sched::{
        after,
        jiffies,
        until, //
    },
    sync::atomic::{
        Atomic,
        Relaxed, //
    },
    time::{
        msecs_to_jiffies,
        Instant,
        Jiffies,
        Monotonic, //
    },
    writeback::{
        kick,
        pace::{
            self,
            DeviceWrites,
            Pace,
            Progress,
            Room,
            DELAY_MS, //
        },
        round::{
            portion,
            turn,
            Ended, //
        }, //
    }, //
};
use core::mem::offset_of;

/// What a disk has written since it was added.
pub(crate) type DiskWrites = bindings::rust_disk_writes;

/// Pages that are written at a time.
pub(crate) const PORTION: i64 = portion(PAGE_SHIFT as u32);

/// A sector has 512 bytes.
const SECTORS_IN_KIB: usize = 2;

/// A device without statistics.
const NO_WRITES: DeviceWrites = DeviceWrites {
    writes: 0,
    kib: 0,
    counts: false,
};

/// A time in nanoseconds.
#[inline]
fn now_ns() -> i64 {
    Instant::<Monotonic>::now().as_nanos()
}

/// Milliseconds since `then`.
#[inline]
fn since_ms(then: Jiffies) -> u64 {
    // SAFETY: The conversion has no requirements.
    unsafe { bindings::jiffies64_to_msecs(jiffies().wrapping_sub(then) as u64) }
}

/// What a wb remembers (`struct rust_pace`), and the threshold of pages at which writers kick.
///
/// The fields are read and written one by one and unordered: they determine when something is done,
/// not whether.
#[derive(Clone, Copy)]
pub struct WbPace<'a>(&'a BdiWriteback);

/// `struct rust_pace`.
#[repr(C)]
struct Fields {
    served: Atomic<usize>,
    due: Atomic<usize>,
    writes: Atomic<usize>,
    sectors: Atomic<usize>,
    average: Atomic<u32>,
    queued: Atomic<u32>,
    looked: Atomic<i64>,
    written: Atomic<usize>,
    portion: Atomic<i64>,
}

const _: () = {
    assert!(size_of::<Fields>() == size_of::<bindings::rust_pace>());
    assert!(offset_of!(Fields, average) == offset_of!(bindings::rust_pace, average));
    assert!(offset_of!(Fields, portion) == offset_of!(bindings::rust_pace, portion));
};

impl<'a> WbPace<'a> {
    /// The memory of `wb`.
    #[inline(always)]
    pub fn of(wb: &'a BdiWriteback) -> Self {
        Self(wb)
    }

    #[inline(always)]
    fn fields(self) -> &'a Fields {
        // SAFETY: The wb is live by its type invariants. The fields have the layout of those of C.
        // They are written only in this file, and before the wb is published; C reads each in one
        // word.
        unsafe { &*(&raw mut (*self.0.as_raw()).dontcache_pace).cast() }
    }

    /// The threshold that writers read.
    #[inline(always)]
    fn threshold(self) -> &'a Atomic<i64> {
        // SAFETY: As above.
        unsafe { Atomic::from_ptr((&raw mut (*self.0.as_raw()).dontcache_kick_at).cast()) }
    }

    /// Initialises the memory of a new wb.
    pub fn init(self) {
        init_cpu_batch();
        self.threshold().store(self.kick_at(u64::MAX), Relaxed);
        // The next round need not wait.
        let long_ago = jiffies().wrapping_sub(msecs_to_jiffies(1000));
        self.fields().served.store(long_ago, Relaxed);
        self.fields().due.store(jiffies(), Relaxed);
    }

    /// The number of dirty dropbehind pages at which a writer kicks, if background writeback begins
    /// at `background` pages. Writers compare the common count, which lacks pages that CPUs have
    /// not yet added: see `BdiWriteback::add_dontcache_dirty()`.
    pub(crate) fn kick_at(self, background: u64) -> i64 {
        pace::kick_at(PAGE_SHIFT as u32, background)
    }

    /// Milliseconds since a round was last served.
    #[inline]
    pub fn rested_ms(self) -> u64 {
        since_ms(self.fields().served.load(Relaxed))
    }

    /// Whether a round was served after `then`.
    #[inline]
    pub fn was_served_after(self, then: Jiffies) -> bool {
        after(self.fields().served.load(Relaxed), then)
    }

    /// Records the end of a round. A round that has skipped the device does not count as served.
    ///
    /// Context: the wb's flusher.
    #[inline]
    pub fn end_round(self, round: Ended) {
        if !round.has_spared_the_device() {
            self.fields().served.store(jiffies(), Relaxed);
        }
        self.look_at_wb();
    }

    /// The flusher is about to write no more than `most` pages of any inode.
    ///
    /// Context: under the lock of the wb's lists, as for [`Self::end_writing`] and
    /// [`Self::is_writing`].
    #[inline]
    pub(crate) fn begin_writing(self, most: i64) {
        self.fields().portion.store(most, Relaxed);
    }

    /// How many pages of an inode are written: `most`, or less.
    ///
    /// Context: the wb's flusher, while it writes, without a lock.
    pub fn chunk(self, most: i64) -> i64 {
        most.min(self.fields().portion.load(Relaxed))
    }

    /// The flusher has finished writing.
    #[inline]
    pub(crate) fn end_writing(self) {
        self.fields().portion.store(0, Relaxed);
    }

    /// Whether a round writes now, and has released the lock. Otherwise the portion is zero.
    #[inline]
    pub(crate) fn is_writing(self) -> bool {
        self.fields().portion.load(Relaxed) != 0
    }

    /// Records what the wb has had written. Progress is measured from here.
    fn look_at_wb(self) {
        let written = self.0.stat_sum(WbStat::Written) as usize;
        self.fields().written.store(written, Relaxed);
        self.fields().looked.store(now_ns(), Relaxed);
    }

    /// How many pages a round may write before other work has its turn again.
    ///
    /// Context: the wb's flusher.
    pub fn turn(self) -> i64 {
        turn(self.progress().written, PORTION)
    }

    fn progress(self) -> Progress {
        let written = self.0.stat_sum(WbStat::Written) as usize;
        let elapsed = now_ns().saturating_sub(self.fields().looked.load(Relaxed));
        Progress {
            written: written.wrapping_sub(self.fields().written.load(Relaxed)) as i64,
            under_way: self.0.stat_sum(WbStat::Writeback),
            elapsed_us: elapsed.unsigned_abs() / 1000,
        }
    }

    /// How much a disk may get that has written `disk`: a portion, or less.
    ///
    /// Context: the wb's flusher.
    pub(crate) fn room(self, disk: Option<DiskWrites>, first: bool) -> Room {
        let device = self.since_look(disk);
        let mut progress = None;
        let (pace, room) = self
            .pace()
            .room(device, || *progress.insert(self.progress()), PORTION);
        self.fields().queued.store(pace.queued_pages, Relaxed);
        match room {
            Room::Pages(_) => {
                if progress.is_some_and(Progress::is_enough) {
                    self.look_at_wb();
                }
                room
            }
            Room::Busy(_) if first && self.rested_ms() >= DELAY_MS.into() => Room::Pages(PORTION),
            Room::Busy(_) => room,
        }
    }

    fn pace(self) -> Pace {
        Pace {
            average_kib: self.fields().average.load(Relaxed),
            queued_pages: self.fields().queued.load(Relaxed),
        }
    }

    /// Begins a round: records what the wb's disk has written.
    ///
    /// Context: the wb's flusher.
    pub(crate) fn begin_round(self, disk: Option<DiskWrites>) {
        let device = self.since_look(disk);
        if let Some(disk) = disk {
            self.fields().writes.store(disk.writes, Relaxed);
            self.fields().sectors.store(disk.sectors, Relaxed);
        }
        let mut pace = self.pace().with_average(device);
        // An idle time does not show what the device can do.
        let under_way = self.0.stat_sum(WbStat::Writeback);
        if under_way <= 0 || self.fields().looked.load(Relaxed) == 0 {
            self.look_at_wb();
            pace = pace.after_idling();
            self.fields().queued.store(pace.queued_pages, Relaxed);
        }
        self.fields().average.store(pace.average_kib, Relaxed);
    }

    /// What the device has written since the last look. Nothing if it is not a disk, or was never
    /// looked at: its earlier writes say nothing.
    fn since_look(self, disk: Option<DiskWrites>) -> DeviceWrites {
        let writes = self.fields().writes.load(Relaxed);
        let sectors = self.fields().sectors.load(Relaxed);
        match disk {
            Some(disk) if writes != 0 => DeviceWrites {
                writes: disk.writes.wrapping_sub(writes) as u64,
                kib: (disk.sectors.wrapping_sub(sectors) / SECTORS_IN_KIB) as u64,
                counts: disk.counts,
            },
            _ => NO_WRITES,
        }
    }
}

impl kick::Wb for BdiWriteback {
    #[inline(always)]
    fn order_after_dirtying(&self) {
        // SAFETY: A barrier has no requirements.
        unsafe { bindings::smp_mb__after_atomic() };
    }

    #[inline(always)]
    fn has_dirty_io(&self) -> bool {
        self.test(WbState::HasDirtyIo)
    }

    #[inline(always)]
    fn is_pending(&self) -> bool {
        self.test(WbState::StartDontcache)
    }

    #[inline(always)]
    fn test_and_set_pending(&self) -> bool {
        self.test_and_set(WbState::StartDontcache)
    }

    #[inline(always)]
    fn test_and_clear_pending(&self) -> bool {
        self.test_and_clear(WbState::StartDontcache)
    }

    #[inline(always)]
    fn about_dirty(&self) -> i64 {
        self.stat(WbStat::DontcacheDirty).read()
    }

    #[inline(always)]
    fn kick_at(&self) -> i64 {
        WbPace::of(self).threshold().load(Relaxed)
    }

    #[inline(always)]
    fn set_kick_at(&self, pages: i64) {
        WbPace::of(self).threshold().store(pages, Relaxed);
    }

    #[inline(always)]
    fn test_and_set_left(&self) -> bool {
        self.test_and_set(WbState::DontcacheLeft)
    }

    #[inline(always)]
    fn set_due_in(&self, milliseconds: u32) {
        let due = jiffies().wrapping_add(msecs_to_jiffies(milliseconds));
        WbPace::of(self).fields().due.store(due, Relaxed);
    }

    #[inline(always)]
    fn due_in(&self) -> Option<u32> {
        until(WbPace::of(self).fields().due.load(Relaxed))
    }

    #[inline(always)]
    fn is_left(&self) -> bool {
        self.test(WbState::DontcacheLeft)
    }

    #[inline(always)]
    fn take_left(&self) -> bool {
        self.is_left() && self.test_and_clear(WbState::DontcacheLeft)
    }

    #[inline(always)]
    fn has_queue(&self) -> bool {
        self.has_inodes(InodeList::Dontcache)
    }

    #[inline(always)]
    fn dontcache_dirty(&self) -> i64 {
        self.stat_sum(WbStat::DontcacheDirty)
    }
}
