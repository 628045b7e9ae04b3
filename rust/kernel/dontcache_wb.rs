// SPDX-License-Identifier: GPL-2.0

//! The state that a wb keeps between the rounds of its flusher for DONTCACHE writers.
//!
//! The decisions are in [`crate::writeback::kick`] and [`crate::writeback::round`].
//!
//! C header: [`include/linux/backing-dev-defs.h`](srctree/include/linux/backing-dev-defs.h)

use crate::{
    backing_dev::{
        BdiWriteback,
        WbStat, //
    },
    bindings,
    dontcache::init_cpu_batch,
    ffi::c_ulong,
    flusher::List,
    page::PAGE_SHIFT,
    sched::{
        jiffies,
        to_ms,
        until, //
    },
    sync::{
        atomic::{
            Atomic,
            Full,
            Relaxed, //
        },
        barrier, //
    },
    time::{
        msecs_to_jiffies,
        Jiffies, //
    },
    writeback::{
        kick::{
            self,
            Bit, //
        },
        round::{
            portion,
            quota,
            Device, //
        }, //
    }, //
};

/// Pages that are written at a time.
pub(crate) const PORTION: i64 = portion(PAGE_SHIFT as u32);

/// The number of dirty dropbehind pages at which a writer kicks, if background writeback begins at
/// `background` pages. Writers compare the common count, which lacks pages that CPUs have not yet
/// added: see `BdiWriteback::add_dontcache_dirty()`.
pub(crate) fn kick_at(background: u64) -> i64 {
    kick::kick_at(PAGE_SHIFT as u32, background)
}

const PAGE_KIB: i64 = 1 << (PAGE_SHIFT - 10);

/// The fields of a wb for rounds. They are read and written one by one. They determine when a
/// round runs, not whether it runs.
impl BdiWriteback {
    /// The bits of the wb's state. They are only accessed atomically.
    #[inline]
    fn state(&self) -> *mut c_ulong {
        // SAFETY: The wb is live by the type invariants, so a pointer to its field is valid.
        unsafe { &raw mut (*self.as_raw()).state }
    }

    #[inline]
    fn threshold(&self) -> &Atomic<i64> {
        // SAFETY: The wb is live by its type invariants. The field is only accessed here, and by C
        // in one word.
        unsafe { Atomic::from_ptr((&raw mut (*self.as_raw()).dontcache_kick_at).cast()) }
    }

    /// When a round was last served.
    fn served(&self) -> &Atomic<Jiffies> {
        // SAFETY: As above.
        unsafe { Atomic::from_ptr(&raw mut (*self.as_raw()).dontcache_served) }
    }

    /// When the delayed pages are due.
    fn due(&self) -> &Atomic<Jiffies> {
        // SAFETY: As above.
        unsafe { Atomic::from_ptr(&raw mut (*self.as_raw()).dontcache_due) }
    }

    /// Pages that were written before a round was last served.
    fn written(&self) -> &Atomic<usize> {
        // SAFETY: As above.
        unsafe { Atomic::from_ptr(&raw mut (*self.as_raw()).dontcache_written) }
    }

    /// Initialises the fields of a new wb.
    ///
    /// # Safety
    ///
    /// No other context may use the wb yet.
    pub unsafe fn init_rounds(&self) {
        init_cpu_batch();
        // SAFETY: The wb is live, and the caller promises that no other context uses the list.
        unsafe { bindings::INIT_LIST_HEAD(self.head(List::Dontcache)) };
        self.threshold().store(kick_at(u64::MAX), Relaxed);
        // The next round need not wait.
        let long_ago = jiffies().wrapping_sub(msecs_to_jiffies(1000));
        self.served().store(long_ago, Relaxed);
        self.due().store(jiffies(), Relaxed);
    }

    /// Milliseconds since a round was last served.
    pub fn served_ms_ago(&self) -> u64 {
        to_ms(jiffies().wrapping_sub(self.served().load(Relaxed)))
    }

    /// Records that a round is served now, or that the device is idle. The writes of the device are
    /// measured from here on.
    ///
    /// Context: the wb's flusher.
    pub(crate) fn serve(&self) {
        self.served().store(jiffies(), Relaxed);
        let written = self.stat_sum(WbStat::Written) as usize;
        self.written().store(written, Relaxed);
    }

    /// Pages that were written since a round was last served.
    fn written_since(&self) -> i64 {
        let written = self.stat_sum(WbStat::Written) as usize;
        written.wrapping_sub(self.written().load(Relaxed)) as i64
    }

    /// How many pages a round writes before other inodes have their turn.
    ///
    /// Context: the wb's flusher.
    pub fn quota(&self) -> i64 {
        quota(PAGE_SHIFT as u32, self.written_since())
    }

    /// How many pages the device may get now. The error is the number of milliseconds after which
    /// the flusher is to try again. If the device is idle, its speed is measured from here on.
    ///
    /// Context: the wb's flusher.
    pub(crate) fn device_limit(&self) -> Result<i64, u32> {
        // The first tick may have ended right after the round, so it is not counted.
        let ticks = jiffies().wrapping_sub(self.served().load(Relaxed));
        let device = Device {
            written: self.written_since().saturating_mul(PAGE_KIB),
            under_way: self.stat_sum(WbStat::Writeback).saturating_mul(PAGE_KIB),
            elapsed_ms: to_ms(ticks.saturating_sub(1)) as i64,
        };
        if device.is_idle() {
            self.serve();
        }
        let kib = device.limit()?;
        Ok(kib.map_or(PORTION, |kib| (kib / PAGE_KIB).max(1)))
    }
}

/// The number of `bit` in a wb's state.
#[inline]
fn number(bit: Bit) -> usize {
    (match bit {
        Bit::Pending => bindings::wb_state_WB_start_dontcache,
        Bit::Delayed => bindings::wb_state_WB_dontcache_delayed,
    }) as usize
}

impl kick::Wb for BdiWriteback {
    #[inline]
    fn order_after_dirtying(&self) {
        // SAFETY: A barrier has no requirements.
        unsafe { bindings::smp_mb__after_atomic() };
    }

    #[inline]
    fn test(&self, bit: Bit) -> bool {
        // SAFETY: `state()` points at the live flag word, which is only accessed atomically.
        let state = unsafe { Atomic::from_ptr(self.state()) };
        state.load(Relaxed) & (1 << number(bit)) != 0
    }

    #[inline]
    fn test_and_set(&self, bit: Bit) -> bool {
        // SAFETY: As above.
        unsafe { bindings::test_and_set_bit(number(bit), self.state()) }
    }

    #[inline]
    fn test_and_clear(&self, bit: Bit) -> bool {
        // SAFETY: As above.
        unsafe { bindings::test_and_clear_bit(number(bit), self.state()) }
    }

    #[inline]
    fn about_dirty(&self) -> i64 {
        // SAFETY: The counter is live. C writes the common count in one word.
        unsafe { (&raw const (*self.stat(WbStat::DontcacheDirty)).count).read_volatile() }
    }

    #[inline]
    fn kick_at(&self) -> i64 {
        self.threshold().load(Relaxed)
    }

    #[inline]
    fn set_kick_at(&self, pages: i64) {
        self.threshold().xchg(pages, Full);
    }

    #[inline]
    fn set_due_in(&self, milliseconds: u32) {
        let due = jiffies().wrapping_add(msecs_to_jiffies(milliseconds));
        self.due().store(due, Relaxed);
    }

    fn due_in(&self) -> Option<u32> {
        // Pairs with the barrier in `test_and_set()`.
        barrier::smp_mb(barrier::Read);
        until(self.due().load(Relaxed))
    }

    #[inline]
    fn has_queue(&self) -> bool {
        self.has_inodes(List::Dontcache)
    }

    #[inline]
    fn dontcache_dirty(&self) -> i64 {
        self.stat_sum(WbStat::DontcacheDirty)
    }
}
