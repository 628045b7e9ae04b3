// SPDX-License-Identifier: GPL-2.0

//! The pace of a wb: when its flusher begins a round for DONTCACHE writers.
//!
//! What is decided, is decided in [`crate::writeback::pace`]; here is what that is about.
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
    fs::AddressSpace,
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
        kick::{
            self,
            Request,
            Wb,
            Why, //
        },
        pace::{
            request_kib,
            Bounds,
            DeviceWrites,
            KickAt,
            Pace,
            Progress,
            Room,
            Share, //
        },
        round::{
            chunk,
            kept,
            portion,
            turn,
            Ended,
            Portion, //
        }, //
    }, //
};
use core::mem::offset_of;

/// What wbs are kept within at first.
const BOUNDS: Bounds = Bounds::with_pages(PAGE_SHIFT as u32);

/// What a disk has written since it is there.
pub(crate) type DiskWrites = bindings::rust_disk_writes;

/// Pages that are written at a time.
pub(crate) const PORTION: i64 = portion(PAGE_SHIFT as u32);

/// In a page.
const KIB: u64 = 1 << (PAGE_SHIFT - 10);

/// Of 512 bytes.
const SECTORS_IN_KIB: usize = 2;

/// Of a device that tells nothing.
const NO_WRITES: DeviceWrites = DeviceWrites {
    writes: 0,
    kib: 0,
    largest_kib: 0,
    counts: false,
};

/// What all wbs are kept within. Each is changed by itself: who reads them meanwhile may see a
/// part.
struct SharedBounds {
    least_pages: Atomic<i64>,
    most_pages: Atomic<i64>,
    inode_pages: Atomic<i64>,
    least_delay_ms: Atomic<u32>,
    most_delay_ms: Atomic<u32>,
}

static SHARED: SharedBounds = SharedBounds {
    least_pages: Atomic::new(BOUNDS.least_pages),
    most_pages: Atomic::new(BOUNDS.most_pages),
    inode_pages: Atomic::new(BOUNDS.inode_pages),
    least_delay_ms: Atomic::new(BOUNDS.least_delay_ms),
    most_delay_ms: Atomic::new(BOUNDS.most_delay_ms),
};

/// What all wbs are kept within.
pub fn bounds() -> Bounds {
    Bounds {
        least_pages: SHARED.least_pages.load(Relaxed),
        most_pages: SHARED.most_pages.load(Relaxed),
        inode_pages: SHARED.inode_pages.load(Relaxed),
        least_delay_ms: SHARED.least_delay_ms.load(Relaxed),
        most_delay_ms: SHARED.most_delay_ms.load(Relaxed),
    }
}

/// Has all wbs kept within `bounds` from their next round on. One caller at a time.
pub fn set_bounds(bounds: Bounds) {
    SHARED.least_pages.store(bounds.least_pages, Relaxed);
    SHARED.most_pages.store(bounds.most_pages, Relaxed);
    SHARED.inode_pages.store(bounds.inode_pages, Relaxed);
    SHARED.least_delay_ms.store(bounds.least_delay_ms, Relaxed);
    SHARED.most_delay_ms.store(bounds.most_delay_ms, Relaxed);
}

/// A time in nanoseconds.
#[inline]
fn now_ns() -> i64 {
    Instant::<Monotonic>::now().as_nanos()
}

/// The milliseconds since then.
#[inline]
fn since_ms(then: Jiffies) -> u64 {
    // SAFETY: A conversion, which is always safe.
    unsafe { bindings::jiffies64_to_msecs(jiffies().wrapping_sub(then) as u64) }
}

/// The pace of a wb (`struct rust_pace`), and from how many pages on writers kick.
///
/// Its fields are read and written one by one and without order: what is decided by them is when,
/// not whether.
#[derive(Clone, Copy)]
pub struct WbPace<'a>(&'a BdiWriteback);

/// `struct rust_pace`.
#[repr(C)]
struct Fields {
    served: Atomic<usize>,
    due: Atomic<usize>,
    delay: Atomic<u32>,
    inodes: Atomic<u32>,
    kick_at: Atomic<i64>,
    kick_at_most: Atomic<i64>,
    uncounted: Atomic<i64>,
    found: Atomic<i64>,
    writes: Atomic<usize>,
    sectors: Atomic<usize>,
    average: Atomic<u32>,
    why: Atomic<u32>,
    looked: Atomic<i64>,
    written: Atomic<usize>,
    queued: Atomic<u32>,
    request: Atomic<u32>,
    whole: Atomic<u32>,
    rest: Atomic<u32>,
    portion: Atomic<i64>,
    kept: Atomic<i64>,
}

const _: () = {
    assert!(size_of::<Fields>() == size_of::<bindings::rust_pace>());
    assert!(offset_of!(Fields, kick_at) == offset_of!(bindings::rust_pace, kick_at));
    assert!(offset_of!(Fields, why) == offset_of!(bindings::rust_pace, why));
    assert!(offset_of!(Fields, kept) == offset_of!(bindings::rust_pace, kept));
};

impl<'a> WbPace<'a> {
    /// That of `wb`.
    #[inline(always)]
    pub fn of(wb: &'a BdiWriteback) -> Self {
        Self(wb)
    }

    #[inline(always)]
    fn fields(self) -> &'a Fields {
        // SAFETY: The wb is live by its type invariants. The fields are as those of C, which are
        // written by what is here, and before anybody knows the wb; C reads each in one word.
        unsafe { &*(&raw mut (*self.0.as_raw()).dontcache_pace).cast() }
    }

    /// What writers look at.
    #[inline(always)]
    fn shared_kick_at(self) -> &'a Atomic<i64> {
        // SAFETY: As above.
        unsafe { Atomic::from_ptr((&raw mut (*self.0.as_raw()).dontcache_kick_at).cast()) }
    }

    /// That of a wb that is being made.
    pub fn init(self) {
        let bounds = bounds();
        let pace = Pace::new(&bounds);
        self.fields().delay.store(pace.delay_ms, Relaxed);
        // It has its share of the device from its first inode on.
        self.fields().kick_at.store(bounds.least_pages, Relaxed);
        self.fields().kick_at_most.store(bounds.most_pages, Relaxed);
        self.shared_kick_at().store(bounds.least_pages, Relaxed);
        // Nobody has to wait for the next one.
        let long_ago = jiffies().wrapping_sub(msecs_to_jiffies(1000));
        self.fields().served.store(long_ago, Relaxed);
        self.fields().due.store(jiffies(), Relaxed);
    }

    /// Writers compare the common count, which lacks some of the pages: what the CPUs had not added
    /// to it yet when the exact sum was taken. So the errors are those of one round, and do not add
    /// up. Where the device may be busy `uncounted` is minus the common count: as many pages as
    /// make a kick are to come besides those. While a round runs they are to come besides those
    /// that it has `found`, which still count until they are written, and then besides what it has
    /// kept of them.
    fn set_kick_at(self, at: KickAt, uncounted: i64, found: i64) {
        self.fields().kick_at.store(at.pages, Relaxed);
        self.fields().kick_at_most.store(at.most, Relaxed);
        self.set_uncounted(uncounted, found);
    }

    fn set_uncounted(self, uncounted: i64, found: i64) {
        self.fields().uncounted.store(uncounted, Relaxed);
        self.fields().found.store(found, Relaxed);
        self.publish();
    }

    fn publish(self) {
        let at = KickAt {
            pages: self.fields().kick_at.load(Relaxed),
            most: self.fields().kick_at_most.load(Relaxed),
        };
        let inodes = self.fields().inodes.load(Relaxed);
        let common = self
            .share()
            .of(at.with_inodes(&bounds(), inodes), self.request())
            .saturating_add(self.fields().found.load(Relaxed))
            .saturating_sub(self.fields().uncounted.load(Relaxed));
        self.shared_kick_at().store(common, Relaxed);
    }

    /// A large request of its disk, in pages, or what is one elsewhere.
    fn request(self) -> i64 {
        match self.fields().request.load(Relaxed) {
            0 => (request_kib(u64::MAX) / KIB) as i64,
            pages => pages.into(),
        }
    }

    /// What the wb is believed to write, and all of its device that have something dirty.
    fn share(self) -> Share {
        let wb = self.0.as_raw();
        // SAFETY: The wb is live by its type invariants, and keeps its device. Both fields are one
        // word, which C changes at any time.
        let (own, all) = unsafe {
            (
                (&raw const (*wb).avg_write_bandwidth).read_volatile() as u64,
                (&raw const (*(*wb).bdi).tot_write_bandwidth.counter).read_volatile() as u64,
            )
        };
        // It is one of them once it has an inode, which may be about to get into a list.
        let all = if self.0.test(WbState::HasDirtyIo) {
            all.max(own)
        } else {
            all.saturating_add(own)
        };
        Share { own, all }
    }

    /// From how many dirty dropbehind pages in the common count on a writer kicks the flusher.
    #[inline(always)]
    pub fn kick_at(self) -> i64 {
        self.shared_kick_at().load(Relaxed)
    }

    /// For how many milliseconds fewer of them wait.
    #[inline]
    pub fn delay_ms(self) -> u32 {
        self.fields().delay.load(Relaxed)
    }

    /// Notes that what is left is due in so many milliseconds.
    #[inline]
    pub fn set_due_in(self, milliseconds: u32) {
        let due = jiffies().wrapping_add(msecs_to_jiffies(milliseconds));
        self.fields().due.store(due, Relaxed);
    }

    /// In how many milliseconds that is. None if it is now.
    #[inline]
    pub fn due_in(self) -> Option<u32> {
        until(self.fields().due.load(Relaxed))
    }

    /// Notes why the next round begins.
    #[inline]
    pub fn set_why(self, why: Why) {
        self.fields().why.store(why as u32, Relaxed);
    }

    /// Why the round begins that was asked for last.
    pub fn why(self) -> Why {
        let why = self.fields().why.load(Relaxed);
        [Why::Deadline, Why::Left]
            .into_iter()
            .find(|known| *known as u32 == why)
            .unwrap_or(Why::Size)
    }

    /// One more inode waits for a round. Under the lock of the wb's lists.
    pub(crate) fn add_inode(self) {
        self.set_inodes(self.fields().inodes.load(Relaxed).saturating_add(1));
    }

    /// So many do. Under the lock of the wb's lists.
    pub(crate) fn set_inodes(self, inodes: u32) {
        self.fields().inodes.store(inodes, Relaxed);
        self.publish();
    }

    /// For how many milliseconds no round was served.
    #[inline]
    pub fn rested_ms(self) -> u64 {
        since_ms(self.fields().served.load(Relaxed))
    }

    /// Whether a round was served after `then`.
    #[inline]
    pub fn was_served_after(self, then: Jiffies) -> bool {
        after(self.fields().served.load(Relaxed), then)
    }

    /// Notes that a round has ended. One that has spared the device has served nobody.
    ///
    /// Context: the wb's flusher.
    #[inline]
    pub fn end_round(self, round: Ended) {
        if !round.has_spared_the_device() {
            self.fields().served.store(jiffies(), Relaxed);
        }
        if self.fields().found.load(Relaxed) > 0 {
            let dirty = self.0.stat_sum(WbStat::DontcacheDirty);
            let uncounted = dirty.saturating_sub(self.0.about_dirty());
            // They are due anyway.
            self.set_uncounted(uncounted, round.kept);
        }
        self.look_at_wb();
    }

    /// The flusher is about to write this.
    ///
    /// Context: under the lock of the wb's lists, as for [`Self::end_writing`] and
    /// [`Self::is_writing`].
    #[inline]
    pub(crate) fn begin_writing(self, portion: Portion) {
        self.fields().portion.store(portion.most, Relaxed);
        let request = if portion.whole {
            self.fields().request.load(Relaxed)
        } else {
            0
        };
        self.fields().whole.store(request, Relaxed);
        self.fields().kept.store(0, Relaxed);
    }

    /// How many pages of the inode of `pages` are written: `most`, or less.
    ///
    /// Context: the wb's flusher, while it writes, without a lock.
    pub fn chunk(self, most: i64, pages: &AddressSpace) -> i64 {
        let most = most.min(self.fields().portion.load(Relaxed));
        let request = self.fields().whole.load(Relaxed).into();
        // Fewer pages than a request need not be counted, nor those of more than a portion, which
        // C writes where a file system's own chunks are larger.
        let enough = most.min(PORTION + 1).saturating_add(request);
        let dirty = if request > 0 && pages.nr_pages() >= request {
            match pages.nr_dirty_pages(enough) {
                dirty if dirty < enough => dirty,
                _ => i64::MAX,
            }
        } else {
            0
        };
        let chunk = chunk(most, dirty, request);
        self.fields().rest.store(chunk.rest as u32, Relaxed);
        chunk.pages
    }

    /// The [`chunk`](Self::chunk) was written but for `unwritten` pages. Returns how many pages of
    /// the inode were kept.
    ///
    /// Context: as above.
    pub fn keep(self, unwritten: i64) -> i64 {
        let kept = kept(self.fields().rest.load(Relaxed).into(), unwritten);
        let all = self.fields().kept.load(Relaxed).saturating_add(kept);
        self.fields().kept.store(all, Relaxed);
        kept
    }

    /// It has written that. Returns how many pages were kept.
    #[inline]
    pub(crate) fn end_writing(self) -> i64 {
        self.fields().portion.store(0, Relaxed);
        self.fields().kept.load(Relaxed)
    }

    /// Whether a round writes now, and has let go of the lock. There is no portion otherwise.
    #[inline]
    pub(crate) fn is_writing(self) -> bool {
        self.fields().portion.load(Relaxed) != 0
    }

    /// Looks at what the wb has had written: its progress is what it has from now on.
    fn look_at_wb(self) {
        let written = self.0.stat_sum(WbStat::Written) as usize;
        self.fields().written.store(written, Relaxed);
        self.fields().looked.store(now_ns(), Relaxed);
    }

    /// How many pages a round may write before others have their turn again.
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

    /// What may be given to a disk that has written this: a portion, or less. If it is nothing, as
    /// many pages as make a kick are let gather besides those that there are.
    ///
    /// Context: the wb's flusher.
    pub(crate) fn room(self, disk: Option<DiskWrites>, first: bool) -> Room {
        let device = self.since_look(disk);
        let mut progress = None;
        let (pace, room) = self
            .pace()
            .room(device, || *progress.insert(self.progress()), PORTION);
        self.fields().queued.store(pace.queued_pages, Relaxed);
        let Room::Busy(_) = room else {
            if progress.is_some_and(Progress::is_enough) {
                self.look_at_wb();
            }
            return room;
        };
        if first && self.rested_ms() >= self.delay_ms().into() {
            return Room::Pages(PORTION);
        }
        self.set_uncounted(self.0.about_dirty().saturating_neg(), 0);
        room
    }

    fn pace(self) -> Pace {
        Pace {
            delay_ms: self.delay_ms(),
            average_kib: self.fields().average.load(Relaxed),
            queued_pages: self.fields().queued.load(Relaxed),
        }
    }

    /// A round begins for what was `asked`: sets the pace by what the wb's disk has written, on a
    /// machine whose background writeback begins at `background` pages.
    ///
    /// Context: the wb's flusher.
    pub(crate) fn adapt(self, asked: Request, disk: Option<DiskWrites>, background: u64) {
        let bounds = bounds();
        let device = self.since_look(disk);
        self.look_at(disk);
        // A time in which there was nothing to do does not tell what the device can do.
        let under_way = self.0.stat_sum(WbStat::Writeback);
        let mut pace = self.pace();
        if under_way <= 0 || self.fields().looked.load(Relaxed) == 0 {
            self.look_at_wb();
            pace = pace.after_idling();
            self.fields().queued.store(pace.queued_pages, Relaxed);
        }
        pace = pace.after(&bounds, device, asked.why == Why::Size);
        self.fields().delay.store(pace.delay_ms, Relaxed);
        self.fields().average.store(pace.average_kib, Relaxed);
        let at = pace.kick_at(&bounds, self.share().all, background);
        let counted = self.0.about_dirty();
        if pace.may_be_busy(under_way) {
            self.set_kick_at(at, counted.saturating_neg(), 0);
        } else {
            self.set_kick_at(at, asked.pages.saturating_sub(counted), asked.pages);
        }
    }

    /// What the device has written since it was looked at. Nothing if it is no disk, or was never
    /// looked at: what it had written before is nobody's measure.
    fn since_look(self, disk: Option<DiskWrites>) -> DeviceWrites {
        let writes = self.fields().writes.load(Relaxed);
        let sectors = self.fields().sectors.load(Relaxed);
        match disk {
            Some(disk) if writes != 0 => DeviceWrites {
                writes: disk.writes.wrapping_sub(writes) as u64,
                kib: (disk.sectors.wrapping_sub(sectors) / SECTORS_IN_KIB) as u64,
                largest_kib: largest_kib(disk),
                counts: disk.counts,
            },
            _ => NO_WRITES,
        }
    }

    fn look_at(self, disk: Option<DiskWrites>) {
        if let Some(disk) = disk {
            self.fields().writes.store(disk.writes, Relaxed);
            self.fields().sectors.store(disk.sectors, Relaxed);
            let request = request_kib(largest_kib(disk)) / KIB;
            self.fields().request.store(request as u32, Relaxed);
        }
    }
}

fn largest_kib(disk: DiskWrites) -> u64 {
    (disk.largest as usize / SECTORS_IN_KIB) as u64
}

impl BdiWriteback {
    /// Has the flusher see to the dirty dropbehind pages when what is left is due, as if it had
    /// left them. Says whether it was to before. A full barrier.
    ///
    /// Context: any.
    #[inline]
    pub fn leave_dontcache(&self) -> bool {
        self.test_and_set(WbState::DontcacheLeft)
    }
}

impl kick::Wb for BdiWriteback {
    #[inline(always)]
    fn order_after_dirtying(&self) {
        // SAFETY: A barrier is always safe.
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
        WbPace::of(self).kick_at()
    }

    #[inline(always)]
    fn delay_ms(&self) -> u32 {
        WbPace::of(self).delay_ms()
    }

    #[inline(always)]
    fn test_and_set_left(&self) -> bool {
        self.leave_dontcache()
    }

    #[inline(always)]
    fn set_due_in(&self, milliseconds: u32) {
        WbPace::of(self).set_due_in(milliseconds);
    }

    #[inline(always)]
    fn set_why(&self, why: Why) {
        WbPace::of(self).set_why(why);
    }

    #[inline(always)]
    fn why(&self) -> Why {
        WbPace::of(self).why()
    }

    #[inline(always)]
    fn due_in(&self) -> Option<u32> {
        WbPace::of(self).due_in()
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
    fn set_stuck(&self, stuck: bool) {
        if stuck {
            self.test_and_set(WbState::DontcacheStuck);
        } else if self.is_stuck() {
            self.test_and_clear(WbState::DontcacheStuck);
        }
    }

    #[inline(always)]
    fn is_stuck(&self) -> bool {
        self.test(WbState::DontcacheStuck)
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
