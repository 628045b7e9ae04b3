// SPDX-License-Identifier: GPL-2.0

//! Backing devices and their writeback.
//!
//! A `bdi_writeback` (wb) is one flusher: its dirty inodes, its work and its statistics. Each
//! backing device has one, and one more for every memory cgroup that dirties its pages. An inode
//! belongs to one wb at a time, may have none before it is first dirtied, and may be moved to
//! another. So there are two ways to hold a wb:
//!
//! | type | keeps | made by |
//! | --- | --- | --- |
//! | [`WbSection`] | the inode's wb what it is; no sleeping meanwhile | [`Inode::wb_section`] |
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

/// Whether a list has entries, looked at in one word. May change at any time.
///
/// C counterpart: `list_empty()` without the lock.
///
/// # Safety
///
/// `head` must point at a live list's head that is initialised.
#[inline(always)]
unsafe fn has_entries(head: *mut bindings::list_head) -> bool {
    // SAFETY: The caller promises a live head. Who writes its word meanwhile writes it whole.
    !ptr::eq(unsafe { (&raw const (*head).next).read_volatile() }, head)
}

/// A bit of a wb's state (`enum wb_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum WbState {
    /// The backing device is registered, and its flusher may be woken.
    Registered = bindings::wb_state_WB_registered,
    /// The flusher is at work.
    WritebackRunning = bindings::wb_state_WB_writeback_running,
    /// The wb has dirty inodes.
    HasDirtyIo = bindings::wb_state_WB_has_dirty_io,
    /// The flusher is asked to write everything.
    StartAll = bindings::wb_state_WB_start_all,
    /// The flusher is asked to write dirty dropbehind pages.
    StartDontcache = bindings::wb_state_WB_start_dontcache,
    /// Dirty dropbehind pages are to be written in a while.
    DontcacheLeft = bindings::wb_state_WB_dontcache_left,
    /// ... of which none could be written when it was tried last.
    DontcacheStuck = bindings::wb_state_WB_dontcache_stuck,
}

/// A statistic of a wb, in pages (`enum wb_stat_item`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum WbStat {
    /// Dirty pages.
    Reclaimable = bindings::wb_stat_item_WB_RECLAIMABLE,
    /// Pages under writeback.
    Writeback = bindings::wb_stat_item_WB_WRITEBACK,
    /// Pages dirtied since the wb was made.
    Dirtied = bindings::wb_stat_item_WB_DIRTIED,
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
    /// Makes a reference of a pointer that C hands over.
    ///
    /// # Safety
    ///
    /// `ptr` must point at a wb that is initialised and is not freed for `'a`.
    #[inline]
    pub unsafe fn from_raw<'a>(ptr: *mut bindings::bdi_writeback) -> &'a Self {
        // SAFETY: The caller promises a live wb for `'a`, and `Self` is transparent over it.
        unsafe { &*ptr.cast() }
    }

    /// The pointer that C knows the wb by.
    #[inline]
    pub fn as_raw(&self) -> *mut bindings::bdi_writeback {
        self.0.get()
    }

    #[inline]
    fn state(&self) -> *mut c_ulong {
        // SAFETY: The wb is live by the type invariants, so its field can be named.
        unsafe { &raw mut (*self.as_raw()).state }
    }

    #[inline]
    pub(crate) fn stat(&self, item: WbStat) -> &PerCpuCounter {
        // SAFETY: The wb is live by the type invariants, its counters were initialised with it, and
        // `WbStat` names only items that exist.
        unsafe {
            let stat = &raw mut (*self.as_raw()).stat;
            PerCpuCounter::from_raw(stat.cast::<bindings::percpu_counter>().add(item as usize))
        }
    }

    /// The head of `list`.
    #[inline(always)]
    pub(crate) fn head(&self, list: InodeList) -> *mut bindings::list_head {
        let wb = self.as_raw();
        // SAFETY: The wb is live by the type invariants, so its fields can be named.
        unsafe {
            match list {
                InodeList::Dontcache => &raw mut (*wb).b_dontcache,
                InodeList::Dirty => &raw mut (*wb).b_dirty,
                InodeList::Io => &raw mut (*wb).b_io,
                InodeList::MoreIo => &raw mut (*wb).b_more_io,
            }
        }
    }

    /// Whether there are inodes in `list`. Unordered.
    #[inline(always)]
    pub(crate) fn has_inodes(&self, list: InodeList) -> bool {
        // SAFETY: The wb is live by the type invariants, and its lists are initialised with it.
        unsafe { has_entries(self.head(list)) }
    }

    /// Whether somebody has queued work for the flusher. Unordered.
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

    /// Sets `bit`, and says whether it was set before. A full barrier.
    ///
    /// C counterpart: `test_and_set_bit()` on `wb->state`.
    #[inline]
    pub fn test_and_set(&self, bit: WbState) -> bool {
        // SAFETY: `state()` points at the live flag word, which is only accessed atomically.
        unsafe { bindings::test_and_set_bit(bit as usize, self.state()) }
    }

    /// Clears `bit`, and says whether it was set before. A full barrier.
    ///
    /// C counterpart: `test_and_clear_bit()` on `wb->state`.
    #[inline]
    pub fn test_and_clear(&self, bit: WbState) -> bool {
        // SAFETY: `state()` points at the live flag word, which is only accessed atomically.
        unsafe { bindings::test_and_clear_bit(bit as usize, self.state()) }
    }

    /// The exact sum of `item` over all CPUs, in pages. Takes the counter's lock and visits every
    /// CPU, so not for hot paths. May be below zero while changes on two CPUs are under way.
    ///
    /// C counterpart: `wb_stat_sum()`, which cuts off below zero.
    #[inline]
    pub fn stat_sum(&self, item: WbStat) -> i64 {
        self.stat(item).sum()
    }

    /// Has the flusher run in `milliseconds`, if it would not before and the device is still
    /// registered. Nothing that is due earlier gets later.
    ///
    /// Leaves interrupts as they are.
    ///
    /// Context: any but NMI, outside of the lock of the wb's work.
    ///
    /// C counterpart: `wb_wakeup_delayed()`, which leaves a later time as it is, too.
    #[cold]
    pub(crate) fn run_within(&self, milliseconds: u32) {
        let delay = msecs_to_jiffies(milliseconds);
        let wb = self.as_raw();
        // SAFETY: The wb is live by the type invariants, its lock and its delayed work are
        // initialised. The lock orders the test of the bit before the queueing: a wb that is shut
        // down clears the bit under the lock first, and drains the work afterwards. Interrupts are
        // off under the lock, and turned on where they were on.
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
/// sleep, and interrupts may be off. It stays on its thread: the section is an RCU read-side
/// critical section, and during a move of the inode it holds the lock of its page cache. For the
/// same reason sections of one inode must not be nested.
///
/// # Invariants
///
/// - `unlocked_inode_to_wb_begin()` was called for `inode`, and filled of `cookie` what
///   `unlocked_inode_to_wb_end()` reads: the flags only where it took the lock.
/// - `wb` is what it returned: null, or the inode's wb until the section ends.
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
        // SAFETY: The inode is live by its invariants, and `cookie` is ours to be written.
        let wb =
            unsafe { bindings::unlocked_inode_to_wb_begin(inode.as_raw(), cookie.as_mut_ptr()) };
        // INVARIANT: The section was begun right above; `wb` is what that returned.
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
        // reference on its wb and keeps the wb until the section ends, and `self` cannot end while
        // it is borrowed.
        unsafe { self.wb.cast::<BdiWriteback>().as_ref() }
    }

    /// Ends the section and keeps the wb. None if the inode has none.
    ///
    /// What sleeps, or takes locks that are not to be held with the section's, is for the
    /// [`WbRef`].
    ///
    /// C counterpart: `wb_get()` and `unlocked_inode_to_wb_end()`.
    #[inline(always)]
    pub fn into_ref(self) -> Option<WbRef<'a>> {
        let wb = NonNull::new(self.wb)?;
        // SAFETY: The section has not ended, so the inode's own reference keeps the wb alive while
        // another is taken.
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
        // SAFETY: By the type invariants the section was begun for this inode with this cookie,
        // and it ends once: here.
        unsafe {
            bindings::unlocked_inode_to_wb_end(self.inode.as_raw(), self.cookie.as_mut_ptr());
        }
    }
}

/// A counted reference to the wb that an inode had in a [`WbSection`].
///
/// Keeps the wb alive, not the inode's: the inode may have moved on. The wb of the device itself
/// is not counted but lives inside the device, which the borrowed inode keeps; hence the lifetime.
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

// SAFETY: What a shared `WbRef` gives access to is `Sync`.
unsafe impl Sync for WbRef<'_> {}

impl WbRef<'_> {
    /// Has the flusher run in `milliseconds`, or earlier, if the device is still registered; at
    /// once with none.
    ///
    /// Leaves interrupts as they are: the caller may be in the section of another inode.
    ///
    /// Context: any but NMI.
    ///
    /// C counterpart: `wb_wakeup()`, and `wb_wakeup_delayed()`, which leaves a later time as it is.
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
        // is not counted: `wb_get()` and `wb_put()` do nothing to it. The reference on any other
        // is the instance's, by the type invariants.
        unsafe {
            if wb != &raw mut (*(*wb).bdi).wb {
                bindings::wb_put(wb);
            }
        }
    }
}

impl Inode {
    /// Looks at the inode's wb, which it may have no more by the time that the caller has the
    /// answer. None if it has none, or is just getting another.
    ///
    /// Cheaper than a section: there is nothing to lock and to unlock.
    ///
    /// Context: any; `look` must not sleep.
    #[inline(always)]
    pub fn look_at_wb<R>(&self, look: impl FnOnce(&BdiWriteback) -> R) -> Option<R> {
        let _rcu = rcu::read_lock();
        // SAFETY: The inode is live by the type invariants. One that is not about to get another wb
        // keeps its own, and a reference on it, at least to the end of this section: who gives it
        // another says so and waits for all sections that may not have seen it.
        let wb = unsafe {
            bindings::inode_wb_if_stays(self.as_raw())
                .cast::<BdiWriteback>()
                .as_ref()
        };
        wb.map(look)
    }

    /// Begins a section in which the inode keeps the wb that it has.
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
        // the lock is held, without which the inode does not change its wb; it holds a reference
        // on it.
        unsafe {
            bindings::inode_to_wb(self.mapping().host().as_raw())
                .cast::<BdiWriteback>()
                .as_ref()
        }
    }
}
