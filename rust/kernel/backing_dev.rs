// SPDX-License-Identifier: GPL-2.0

//! Backing devices and their writeback.
//!
//! A `bdi_writeback` (wb) is one flusher: its dirty inodes, its work and its statistics. Each
//! backing device has one, and one more for every memory cgroup that dirties its pages. An inode
//! belongs to one wb at a time. It may have none before it is first dirtied, and may be moved to
//! another wb. The lock of its page cache ([`PagesGuard`]) keeps the inode's wb unchanged.
//!
//! C headers: [`include/linux/backing-dev.h`](srctree/include/linux/backing-dev.h),
//! [`include/linux/backing-dev-defs.h`](srctree/include/linux/backing-dev-defs.h)

use crate::{
    bindings,
    fs::{
        Inode,
        PagesGuard, //
    },
    sync::rcu,
    types::Opaque, //
};

/// A statistic of a wb, in pages (`enum wb_stat_item`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum WbStat {
    /// Pages under writeback.
    Writeback = bindings::wb_stat_item_WB_WRITEBACK,
    /// Pages written since the wb was made.
    Written = bindings::wb_stat_item_WB_WRITTEN,
    /// Dirty pages of dropbehind folios.
    DontcacheDirty = bindings::wb_stat_item_WB_DONTCACHE_DIRTY,
}

/// The writeback of a backing device, or of one memory cgroup on it (`struct bdi_writeback`).
///
/// # Invariants
///
/// Instances are initialised and not freed for as long as a reference to them exists.
#[repr(transparent)]
pub struct BdiWriteback(Opaque<bindings::bdi_writeback>);

// SAFETY: State bits and statistics are atomic, and the heads of lists are read in one word; a wb
// has no thread affinity.
unsafe impl Sync for BdiWriteback {}

impl BdiWriteback {
    /// Makes a reference of a C pointer.
    ///
    /// # Safety
    ///
    /// `ptr` must point at a wb that is initialised and is not freed for `'a`.
    #[inline]
    pub unsafe fn from_raw<'a>(ptr: *mut bindings::bdi_writeback) -> &'a Self {
        // SAFETY: The caller promises a live wb for `'a`, and `Self` is transparent over it.
        unsafe { &*ptr.cast() }
    }

    /// The pointer that C uses for the wb.
    #[inline]
    pub fn as_raw(&self) -> *mut bindings::bdi_writeback {
        self.0.get()
    }

    /// The counter of `item`, which is initialised with the wb.
    #[inline]
    pub(crate) fn stat(&self, item: WbStat) -> *mut bindings::percpu_counter {
        // SAFETY: The wb is live by the type invariants, and `WbStat` has only items that exist.
        unsafe { (&raw mut (*self.as_raw()).stat[item as usize]).cast() }
    }

    /// The exact sum of `item` over all CPUs, in pages. Takes the counter's lock and visits every
    /// CPU, so it is not for hot paths. May be negative during changes on two CPUs.
    ///
    /// C counterpart: `wb_stat_sum()`, which cuts off below zero.
    #[inline]
    pub fn stat_sum(&self, item: WbStat) -> i64 {
        // SAFETY: The wb is live by the type invariants, and so is its counter.
        unsafe { bindings::percpu_counter_sum(self.stat(item)) }
    }
}

impl Inode {
    /// Calls `look` with the inode's wb, and returns the result. The inode may have another wb by
    /// the time that the caller uses the result. None if the inode has no wb, or is moving to
    /// another wb.
    ///
    /// Cheaper than the lock of the page cache.
    ///
    /// Context: any; `look` must not sleep.
    #[inline]
    pub fn look_at_wb<R>(&self, look: impl FnOnce(&BdiWriteback) -> R) -> Option<R> {
        let _rcu = rcu::read_lock();
        // SAFETY: The inode is live by the type invariants. An inode that is not about to change
        // its wb keeps the wb, and a reference on it, at least to the end of this section: a change
        // is announced, and waits for all sections that may not have seen the announcement.
        let wb = unsafe {
            bindings::inode_wb_if_stays(self.as_raw())
                .cast::<BdiWriteback>()
                .as_ref()
        };
        wb.map(look)
    }
}

impl PagesGuard<'_> {
    /// The wb of the inode. None if the inode was never dirtied.
    #[inline]
    pub fn wb(&self) -> Option<&BdiWriteback> {
        // SAFETY: By the type invariant of the page cache the inode is live. By the type invariant
        // of the guard the lock of the page cache is held. The inode changes its wb only under that
        // lock, and holds a reference on its wb.
        unsafe {
            bindings::inode_to_wb(self.mapping().host().as_raw())
                .cast::<BdiWriteback>()
                .as_ref()
        }
    }
}
