// SPDX-License-Identifier: GPL-2.0

//! Backing devices and their writeback.
//!
//! A `bdi_writeback` (wb) is one flusher: its dirty inodes, its work and its statistics. Each
//! backing device has one, and one more for every memory cgroup that dirties its pages. An inode
//! belongs to one wb at a time. It may have none before it is first dirtied, and may be moved to
//! another wb. So there are two ways to hold a wb:
//!
//! | type | keeps | made by |
//! | --- | --- | --- |
//! | [`WbSection`] | the inode's wb unchanged; no sleeping meanwhile | [`Inode::wb_section`] |
//! | [`WbRef`] | the wb alive, after its section has ended | [`WbSection::into_ref`] |
//!
//! C headers: [`include/linux/backing-dev.h`](srctree/include/linux/backing-dev.h),
//! [`include/linux/backing-dev-defs.h`](srctree/include/linux/backing-dev-defs.h)

use crate::{
    bindings,
    ffi::c_ulong,
    fs::{
        Inode,
        PagesGuard, //
    },
    percpu_counter::PerCpuCounter,
    sched::{
        after,
        jiffies, //
    },
    sync::rcu,
    time::msecs_to_jiffies,
    types::{
        NotThreadSafe,
        Opaque, //
    }, //
};
use core::{
    marker::PhantomData,
    mem::MaybeUninit,
    ops::Deref,
    ptr::{
        self,
        NonNull, //
    }, //
};

/// A list of inodes of a wb.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum InodeList {
    Dontcache,
    Dirty,
    Io,
    MoreIo,
}

/// Whether a list has entries, by a read of one word. May change at any time.
///
/// C counterpart: `list_empty()` without the lock.
///
/// # Safety
///
/// `head` must point at the initialised head of a live list.
#[inline(always)]
unsafe fn has_entries(head: *mut bindings::list_head) -> bool {
    // SAFETY: The caller promises a live head. Concurrent writers write its word whole.
    !ptr::eq(unsafe { (&raw const (*head).next).read_volatile() }, head)
}

/// A bit of a wb's state (`enum wb_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum WbState {
    /// The backing device is registered, and its flusher may be woken.
    Registered = bindings::wb_state_WB_registered,
    /// The wb has dirty inodes.
    HasDirtyIo = bindings::wb_state_WB_has_dirty_io,
    /// The flusher is requested to write dirty dropbehind pages now.
    StartDontcache = bindings::wb_state_WB_start_dontcache,
    /// Dirty dropbehind pages are to be written after a delay.
    DontcacheLeft = bindings::wb_state_WB_dontcache_left,
}

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

    #[inline]
    fn state(&self) -> *mut c_ulong {
        // SAFETY: The wb is live by the type invariants, so a pointer to its field is valid.
        unsafe { &raw mut (*self.as_raw()).state }
    }

    #[inline]
    pub(crate) fn stat(&self, item: WbStat) -> &PerCpuCounter {
        // SAFETY: The wb is live by the type invariants. Its counters were initialised with it, and
        // `WbStat` has only items that exist.
        unsafe {
            let stat = &raw mut (*self.as_raw()).stat;
            PerCpuCounter::from_raw(stat.cast::<bindings::percpu_counter>().add(item as usize))
        }
    }

    /// The head of `list`.
    #[inline(always)]
    pub(crate) fn head(&self, list: InodeList) -> *mut bindings::list_head {
        let wb = self.as_raw();
        // SAFETY: The wb is live by the type invariants, so pointers to its fields are valid.
        unsafe {
            match list {
                InodeList::Dontcache => &raw mut (*wb).b_dontcache,
                InodeList::Dirty => &raw mut (*wb).b_dirty,
                InodeList::Io => &raw mut (*wb).b_io,
                InodeList::MoreIo => &raw mut (*wb).b_more_io,
            }
        }
    }

    /// Whether `list` has inodes. Unordered.
    #[inline(always)]
    pub(crate) fn has_inodes(&self, list: InodeList) -> bool {
        // SAFETY: The wb is live by the type invariants, and its lists are initialised with it.
        unsafe { has_entries(self.head(list)) }
    }

    /// Whether work is queued for the flusher. Unordered.
    #[inline(always)]
    pub(crate) fn has_work(&self) -> bool {
        // SAFETY: As in `has_inodes()`.
        unsafe { has_entries(&raw mut (*self.as_raw()).work_list) }
    }

    /// Whether `bit` is set. Unordered.
    ///
    /// C counterpart: `test_bit()` on `wb->state`.
    #[inline]
    pub fn test(&self, bit: WbState) -> bool {
        // SAFETY: `state()` points at the live flag word, which is only accessed atomically.
        unsafe { bindings::test_bit(bit as usize, self.state()) }
    }

    /// Sets `bit`, and returns whether it was set before. A full barrier.
    ///
    /// C counterpart: `test_and_set_bit()` on `wb->state`.
    #[inline]
    pub fn test_and_set(&self, bit: WbState) -> bool {
        // SAFETY: `state()` points at the live flag word, which is only accessed atomically.
        unsafe { bindings::test_and_set_bit(bit as usize, self.state()) }
    }

    /// Clears `bit`, and returns whether it was set before. A full barrier.
    ///
    /// C counterpart: `test_and_clear_bit()` on `wb->state`.
    #[inline]
    pub fn test_and_clear(&self, bit: WbState) -> bool {
        // SAFETY: `state()` points at the live flag word, which is only accessed atomically.
        unsafe { bindings::test_and_clear_bit(bit as usize, self.state()) }
    }

    /// The exact sum of `item` over all CPUs, in pages. Takes the counter's lock and visits every
    /// CPU, so it is not for hot paths. May be negative during changes on two CPUs.
    ///
    /// C counterpart: `wb_stat_sum()`, which cuts off below zero.
    #[inline]
    pub fn stat_sum(&self, item: WbStat) -> i64 {
        self.stat(item).sum()
    }

    /// Has the flusher run in `milliseconds` or earlier, if the device is still registered. An
    /// earlier run is not delayed.
    ///
    /// Does not change whether interrupts are on.
    ///
    /// Context: any but NMI, outside of the lock of the wb's work.
    ///
    /// C counterpart: `wb_wakeup_delayed()`, which does not bring a later run forward.
    #[cold]
    pub(crate) fn run_within(&self, milliseconds: u32) {
        let delay = msecs_to_jiffies(milliseconds);
        let wb = self.as_raw();
        // SAFETY: The wb is live by the type invariants; its lock and its delayed work are
        // initialised. The lock orders the test of the bit before the queueing: the shutdown of a
        // wb clears the bit under the lock first, and drains the work afterwards. Interrupts are
        // off under the lock, and are turned on only if they were on.
        unsafe {
            let off = bindings::irqs_disabled();
            if off {
                bindings::spin_lock(&raw mut (*wb).work_lock);
            } else {
                bindings::spin_lock_irq(&raw mut (*wb).work_lock);
            }
            let work = &raw mut (*wb).dwork;
            if self.test(WbState::Registered)
                && !bindings::queue_delayed_work(bindings::bdi_wq, work, delay)
                && bindings::timer_pending(&raw const (*work).timer)
                && after((*work).timer.expires, jiffies().wrapping_add(delay))
            {
                bindings::mod_delayed_work(bindings::bdi_wq, work, delay);
            }
            if off {
                bindings::spin_unlock(&raw mut (*wb).work_lock);
            } else {
                bindings::spin_unlock_irq(&raw mut (*wb).work_lock);
            }
        }
    }
}

/// A section in which an inode keeps its wb.
///
/// Begins with [`Inode::wb_section`] and ends when it is dropped. The code in between must not
/// sleep, and interrupts may be off. The section stays on its thread: it is an RCU read-side
/// critical section, and during a move of the inode it holds the lock of the inode's page cache.
/// For the same reason sections of one inode must not be nested.
///
/// # Invariants
///
/// - `unlocked_inode_to_wb_begin()` was called for `inode`, and filled the fields of `cookie` that
///   `unlocked_inode_to_wb_end()` reads: the flags only if it took the lock.
/// - `wb` is its return value: null, or the inode's wb until the section ends.
pub struct WbSection<'a> {
    inode: &'a Inode,
    wb: *mut bindings::bdi_writeback,
    cookie: MaybeUninit<bindings::wb_lock_cookie>,
    _not_send: NotThreadSafe,
}

impl<'a> WbSection<'a> {
    #[inline(always)]
    fn begin(inode: &'a Inode) -> Self {
        let mut cookie = MaybeUninit::uninit();
        // SAFETY: The inode is live by its invariants, and `cookie` may be written.
        let wb =
            unsafe { bindings::unlocked_inode_to_wb_begin(inode.as_raw(), cookie.as_mut_ptr()) };
        // INVARIANT: The section was begun above; `wb` is the return value.
        Self {
            inode,
            wb,
            cookie,
            _not_send: NotThreadSafe,
        }
    }

    /// The inode's wb. None if the inode was never dirtied.
    #[inline(always)]
    pub fn wb(&self) -> Option<&BdiWriteback> {
        // SAFETY: By the type invariants `wb` is null or the inode's wb. The inode holds a
        // reference on its wb and keeps the wb until the section ends. `self` cannot end while it
        // is borrowed.
        unsafe { self.wb.cast::<BdiWriteback>().as_ref() }
    }

    /// Ends the section and keeps the wb. None if the inode has no wb.
    ///
    /// Code that sleeps, or takes locks that must not nest in the section's, needs the [`WbRef`].
    ///
    /// C counterpart: `wb_get()` and `unlocked_inode_to_wb_end()`.
    #[inline(always)]
    pub fn into_ref(self) -> Option<WbRef<'a>> {
        let wb = NonNull::new(self.wb)?;
        // SAFETY: The section has not ended, so the inode's own reference keeps the wb alive while
        // the other reference is taken.
        unsafe { bindings::wb_get(wb.as_ptr()) };
        // INVARIANT: `wb_get()` took the reference that the instance owns.
        Some(WbRef {
            wb,
            _inode: PhantomData,
        })
    }
}

impl Drop for WbSection<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: By the type invariants the section was begun for this inode with this cookie. It
        // ends once, here.
        unsafe {
            bindings::unlocked_inode_to_wb_end(self.inode.as_raw(), self.cookie.as_mut_ptr());
        }
    }
}

/// A counted reference to the wb that an inode had in a [`WbSection`].
///
/// It does not keep the inode's wb: the inode may have moved to another. The wb of the device
/// itself is not counted. It lives inside the device, which the borrowed inode keeps; hence the
/// lifetime.
///
/// # Invariants
///
/// `wb` is live, and the instance owns a reference on it.
pub struct WbRef<'a> {
    wb: NonNull<bindings::bdi_writeback>,
    _inode: PhantomData<&'a Inode>,
}

// SAFETY: `wb_put()` may be called from any thread, and a wb is `Sync`.
unsafe impl Send for WbRef<'_> {}

// SAFETY: A shared `WbRef` only gives access to a wb, which is `Sync`.
unsafe impl Sync for WbRef<'_> {}

impl WbRef<'_> {
    /// Has the flusher run in `milliseconds` or earlier, if the device is still registered. With
    /// zero it runs immediately.
    ///
    /// Does not change whether interrupts are on: the caller may be in a section of another inode.
    ///
    /// Context: any but NMI.
    ///
    /// C counterpart: `wb_wakeup()`, and `wb_wakeup_delayed()`, which does not bring a later run
    /// forward.
    #[cold]
    pub fn run_within(&self, milliseconds: u32) {
        (**self).run_within(milliseconds);
    }
}

impl Deref for WbRef<'_> {
    type Target = BdiWriteback;

    #[inline]
    fn deref(&self) -> &BdiWriteback {
        // SAFETY: The wb is live by the type invariants for as long as `self` is borrowed.
        unsafe { BdiWriteback::from_raw(self.wb.as_ptr()) }
    }
}

impl Drop for WbRef<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        let wb = self.wb.as_ptr();
        // SAFETY: The wb is live by the type invariants, and so is its device. The device's own wb
        // is not counted: `wb_get()` and `wb_put()` do nothing to it. By the type invariants the
        // instance owns the reference on any other wb.
        unsafe {
            if wb != &raw mut (*(*wb).bdi).wb {
                bindings::wb_put(wb);
            }
        }
    }
}

impl Inode {
    /// Calls `look` with the inode's wb, which may no longer be the inode's when the caller gets
    /// the answer. None if the inode has no wb, or is moving to another.
    ///
    /// Cheaper than a section, because no lock is taken.
    ///
    /// Context: any; `look` must not sleep.
    #[inline(always)]
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

    /// Begins a section in which the inode keeps its wb.
    ///
    /// Context: any; the section itself must not sleep.
    ///
    /// C counterpart: `unlocked_inode_to_wb_begin()`.
    #[inline]
    pub fn wb_section(&self) -> WbSection<'_> {
        WbSection::begin(self)
    }
}

impl PagesGuard<'_> {
    /// The wb of the inode. None if the inode was never dirtied.
    #[inline]
    pub fn wb(&self) -> Option<&BdiWriteback> {
        // SAFETY: By the type invariant of the page cache the inode is live. By that of the guard
        // the lock is held. Without that lock the inode does not change its wb, on which it holds a
        // reference.
        unsafe {
            bindings::inode_to_wb(self.mapping().host().as_raw())
                .cast::<BdiWriteback>()
                .as_ref()
        }
    }
}
