// SPDX-License-Identifier: GPL-2.0

//! The flusher of a `bdi_writeback`, and its lists of inodes.
//!
//! | list | inodes | order |
//! | --- | --- | --- |
//! | `b_dontcache` | dirty ones that may have dirty dropbehind folios | last come first; a round takes from the end |
//! | `b_dirty` | other dirty ones | last dirtied first |
//! | `b_io` | queued, written from the end | |
//! | `b_more_io` | to be queued again | what has waited longest is last |
//!
//! All are under one lock ([`Lists`]), which is let go where an inode is written. So nothing of a list
//! is ever handed out: the methods speak of the *next* inode of `b_dontcache`, and one that writes
//! borrows the lists for itself alone. Between two calls every inode is in a list of the wb, whatever
//! becomes of the caller.
//!
//! Two flags of an inode's page cache say where it belongs:
//!
//! | flag | holds |
//! | --- | --- |
//! | `AS_DONTCACHE_DIRTY` | it may have dirty dropbehind folios: set with the first, cleared by who has looked in vain |
//! | `AS_DONTCACHE_LISTED` | ... and its inode is in `b_dontcache`, is queued, or will be put there by who has it |
//!
//! C header: [`include/linux/backing-dev-defs.h`](srctree/include/linux/backing-dev-defs.h)

use crate::{
    backing_dev::BdiWriteback,
    bindings,
    ffi::c_long,
    fs::{
        AddressSpace,
        Inode, //
    },
    sched::jiffies,
    time::{
        msecs_to_jiffies,
        Jiffies, //
    },
    types::NotThreadSafe,
    writeback::{
        kick::is_asked_for,
        round::{
            self,
            Next,
            Written,
            IN_SYNC_MS, //
        }, //
    }, //
};
use core::{
    ops::{
        Deref,
        DerefMut, //
    },
    ptr, //
};

/// `I_DIRTY`, which is a sum of flags.
const DIRTY: u32 = bindings::inode_state_flags_enum_I_DIRTY_SYNC
    | bindings::inode_state_flags_enum_I_DIRTY_DATASYNC
    | bindings::inode_state_flags_enum_I_DIRTY_PAGES;

/// For how many inodes of `b_dirty` the place of another one is sought.
const PLACES: usize = 256;

/// The context of a wb's flusher: its work item, which runs once at a time, and may sleep.
///
/// # Invariants
///
/// The current context is that of the flusher of `wb`, holds no lock, and stays so for `'a`.
pub struct Flusher<'a> {
    wb: &'a BdiWriteback,
    sync: Option<Sync>,
    _not_send: NotThreadSafe,
}

/// Work for one super block, which has to write what was dirtied before a time.
#[derive(Clone, Copy)]
struct Sync {
    sb: *mut bindings::super_block,
    dirtied_before: Jiffies,
}

impl<'a> Flusher<'a> {
    /// The flusher whose context this is.
    ///
    /// # Safety
    ///
    /// `wb` must point at a wb that is not freed for `'a`, and the current context must be that of
    /// its flusher, without a lock, for all of `'a`.
    #[inline]
    pub unsafe fn assume_running(wb: *mut bindings::bdi_writeback) -> Self {
        // INVARIANT: The caller promises the context.
        Self {
            // SAFETY: The caller promises a live wb.
            wb: unsafe { BdiWriteback::from_raw(wb) },
            sync: None,
            _not_send: NotThreadSafe,
        }
    }

    /// The same beside `work`, which is for inodes that were dirtied before `dirtied_before`: if it
    /// is for one super block, that is for `sync()` or the like, these are left to it.
    ///
    /// # Safety
    ///
    /// As for [`Self::assume_running`]; and `work` must point at the work that this flusher does.
    #[inline]
    pub unsafe fn assume_running_beside(
        wb: *mut bindings::bdi_writeback,
        work: *mut bindings::wb_writeback_work,
        dirtied_before: Jiffies,
    ) -> Self {
        // SAFETY: The caller promises live work.
        let sb = unsafe { bindings::rust_wb_work_sb(work) };
        Self {
            sync: (!sb.is_null()).then_some(Sync { sb, dirtied_before }),
            // SAFETY: The caller promises what this asks for.
            ..unsafe { Self::assume_running(wb) }
        }
    }

    /// The wb.
    #[inline]
    pub fn wb(&self) -> &'a BdiWriteback {
        self.wb
    }

    /// Whether it runs beside work for `sync()`.
    #[inline]
    pub fn is_beside_sync(&self) -> bool {
        self.sync.is_some()
    }

    /// Whether a kick is to be served beside the sync now, for which somebody waits: once in a while.
    pub fn serves_beside_sync(&self) -> bool {
        let now = jiffies();
        // SAFETY: The wb is live, and only its flusher uses this field.
        let served = unsafe { &mut (*self.wb.as_raw()).dontcache_served };
        let rested = after(now, served.wrapping_add(msecs_to_jiffies(IN_SYNC_MS)));
        let serves = rested && is_asked_for(self.wb);
        if serves {
            *served = now;
        }
        serves
    }

    /// Has the flusher run again in `milliseconds`, if it would not before. Nothing that is due
    /// earlier gets later.
    ///
    /// C counterpart: `wb_wakeup_delayed()`, for which dirty inodes must exist.
    pub fn run_again_in(&self, milliseconds: u32) {
        let wb = self.wb.as_raw();
        // SAFETY: The wb is live, and its delayed work is initialised. The function takes the lock
        // that orders it with the shutdown of the wb, which the flusher does not hold.
        unsafe { bindings::rust_wb_run_again(wb, msecs_to_jiffies(milliseconds)) };
    }
}

impl round::Flusher for Flusher<'_> {
    type Lists<'b>
        = FlusherLists<'b>
    where
        Self: 'b;

    #[inline]
    fn lock_lists(&mut self) -> FlusherLists<'_> {
        // SAFETY: The wb is live, so its lock is initialised; by the type invariants the current
        // context does not hold it.
        unsafe { bindings::spin_lock(&raw mut (*self.wb.as_raw()).list_lock) };
        // INVARIANT: The lock was taken right above, in the flusher's context.
        FlusherLists {
            lists: ListsGuard(Lists {
                wb: self.wb,
                _not_send: NotThreadSafe,
            }),
            sync: self.sync,
            next: None,
            first_sure: ptr::null_mut(),
        }
    }

    #[inline]
    fn others_wait(&self) -> bool {
        // SAFETY: The wb is live; the list is looked at in one word, as C does without the lock.
        unsafe {
            let list = &raw mut (*self.wb.as_raw()).work_list;
            !ptr::eq((&raw const (*list).next).read_volatile(), list)
        }
    }
}

/// The lists of a wb, locked.
///
/// # Invariants
///
/// - The `list_lock` of `wb` is held by the current context.
/// - Every inode in a list of the wb is live while the lock is held: who frees an inode takes it out
///   first, under the lock.
pub struct Lists<'a> {
    wb: &'a BdiWriteback,
    _not_send: NotThreadSafe,
}

/// The lock of a wb's lists. Dropping it unlocks them.
///
/// # Invariants
///
/// The lock is this guard's to release.
#[must_use = "the lists are unlocked when the guard is dropped"]
pub struct ListsGuard<'a>(Lists<'a>);

/// The lists, locked by the flusher, which alone may take inodes from queues.
///
/// # Invariants
///
/// - The context is that of the flusher.
/// - `next` and `first_sure` hold links of inodes in lists of the wb, the latter in `b_io`, or
///   nothing; the lock has been held since they were found.
pub struct FlusherLists<'a> {
    lists: ListsGuard<'a>,
    sync: Option<Sync>,
    next: Option<Candidate>,
    first_sure: *mut bindings::list_head,
}

/// An inode that was looked at.
#[derive(Clone, Copy)]
struct Candidate {
    link: *mut bindings::list_head,
    /// Other work has queued it.
    queued: bool,
}

impl<'a> Deref for ListsGuard<'a> {
    type Target = Lists<'a>;

    #[inline]
    fn deref(&self) -> &Lists<'a> {
        &self.0
    }
}

impl<'a> DerefMut for ListsGuard<'a> {
    #[inline]
    fn deref_mut(&mut self) -> &mut Lists<'a> {
        &mut self.0
    }
}

impl Drop for ListsGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: By the type invariants the lock is held, and ours to release.
        unsafe { bindings::spin_unlock(&raw mut (*self.0.wb.as_raw()).list_lock) };
    }
}

impl<'a> ListsGuard<'a> {
    /// Locks the lists of the wb that `inode` has, and keeps it there. None if the inode was never
    /// dirtied.
    ///
    /// Context: a task, without a section of the inode's wb.
    ///
    /// C counterpart: `inode_to_wb_and_lock_list()`, for an inode that has one.
    #[inline]
    pub fn of_inode(inode: &'a Inode) -> Option<Self> {
        inode.wb_section().wb()?;
        // SAFETY: The inode is live. It has a wb, and always will.
        let wb = unsafe { bindings::rust_wb_lock_list_of(inode.as_raw()) };
        // INVARIANT: The function has taken the lock. While it is held the inode keeps the wb, on
        // which it has a reference.
        Some(Self(Lists {
            // SAFETY: As above.
            wb: unsafe { BdiWriteback::from_raw(wb) },
            _not_send: NotThreadSafe,
        }))
    }
}

/// One of the lists.
macro_rules! list {
    ($lists:expr, $name:ident) => {
        // SAFETY: The wb is live, so its field can be named.
        unsafe { &raw mut (*$lists.wb.as_raw()).$name }
    };
}

/// The inode of a link.
///
/// # Safety
///
/// `link` must be the link of a live inode, in a list of a wb whose lock is held for `'a`.
#[inline]
unsafe fn inode_of<'a>(link: *mut bindings::list_head) -> &'a Inode {
    // SAFETY: The caller promises that the link is the field of an inode.
    unsafe { Inode::from_raw(crate::container_of!(link, bindings::inode, i_io_list)) }
}

/// The page cache of an inode.
#[inline]
fn pages_of(inode: &Inode) -> &AddressSpace {
    // SAFETY: The inode is live, so is its own page cache: that of a device's node is the block
    // device's, and not meant.
    unsafe { AddressSpace::from_raw(&raw mut (*inode.as_raw()).i_data) }
}

#[inline]
fn link_of(inode: &Inode) -> *mut bindings::list_head {
    // SAFETY: The inode is live, so its field can be named.
    unsafe { &raw mut (*inode.as_raw()).i_io_list }
}

#[inline]
fn dirtied_when(inode: &Inode) -> Jiffies {
    // SAFETY: The inode is live; who writes the field holds the lock of the lists it is in.
    unsafe { (&raw const (*inode.as_raw()).dirtied_when).read_volatile() }
}

/// C counterpart: `time_after(a, b)`.
#[inline]
fn after(a: Jiffies, b: Jiffies) -> bool {
    (b.wrapping_sub(a) as c_long) < 0
}

impl<'a> Lists<'a> {
    /// Adopts lists that C has locked.
    ///
    /// # Safety
    ///
    /// `wb` must point at a wb that is not freed for `'a`, whose `list_lock` the current context
    /// holds for `'a`.
    #[inline]
    pub unsafe fn assume_locked(wb: *mut bindings::bdi_writeback) -> Self {
        // INVARIANT: The caller promises the lock.
        Self {
            // SAFETY: The caller promises a live wb.
            wb: unsafe { BdiWriteback::from_raw(wb) },
            _not_send: NotThreadSafe,
        }
    }

    /// The last link of `list`. None if it is empty.
    #[inline]
    fn last(list: *mut bindings::list_head) -> Option<*mut bindings::list_head> {
        // SAFETY: The list is one of the wb's, which only changes under the lock.
        let last = unsafe { (*list).prev };
        (!ptr::eq(last, list)).then_some(last)
    }

    /// Whether these are the lists that `inode` gets into.
    #[inline]
    fn is_wb_of(&self, inode: &Inode) -> bool {
        // SAFETY: The inode is live. If it has this wb it keeps it, for the lock is held.
        let wb = unsafe { bindings::inode_to_wb(inode.as_raw()) };
        ptr::eq(wb, self.wb.as_raw())
    }

    /// Whether `inode` is in one of these lists.
    #[inline]
    fn have(&self, inode: &Inode) -> bool {
        let link = link_of(inode);
        // SAFETY: The link is initialised with its inode, and changes under the lock that is held.
        self.is_wb_of(inode) && !ptr::eq(unsafe { (*link).next }, link)
    }

    /// Marks the inode as queued, or as not queued, while it is moved.
    #[inline]
    fn set_queued(inode: &Inode, queued: bool) {
        let raw = inode.as_raw();
        // SAFETY: The inode is live. Its lock nests in that of the lists, and is held for this alone.
        unsafe {
            bindings::spin_lock(&raw mut (*raw).i_lock);
            if queued {
                bindings::inode_state_set(raw, bindings::inode_state_flags_enum_I_SYNC_QUEUED);
            } else {
                bindings::inode_state_clear(raw, bindings::inode_state_flags_enum_I_SYNC_QUEUED);
            }
            bindings::spin_unlock(&raw mut (*raw).i_lock);
        }
    }

    /// Moves the link in front of `place`, which is another one or a list.
    #[inline]
    fn move_before(link: *mut bindings::list_head, place: *mut bindings::list_head) {
        // SAFETY: Both are links or heads of the wb's lists, whose lock is held.
        unsafe { bindings::list_move_tail(link, place) };
    }

    /// Moves the link behind `place`, which is another one or a list.
    #[inline]
    fn move_behind(link: *mut bindings::list_head, place: *mut bindings::list_head) {
        // SAFETY: As for `move_before`.
        unsafe { bindings::list_move(link, place) };
    }

    /// Queues, for work that writes what was dirtied before `dirtied_before`, those of
    /// `b_dontcache`, behind all that is queued: they are written first. Returns how many.
    ///
    /// Work for one super block takes its inodes only.
    ///
    /// C counterpart: `move_expired_inodes()`, which stops at the first that is too new.
    pub fn queue_older(
        &mut self,
        sb: *mut bindings::super_block,
        dirtied_before: Jiffies,
    ) -> usize {
        let list = list!(self, b_dontcache);
        let mut moved = 0;
        // SAFETY: The list is the wb's, and the lock is held.
        let mut link = unsafe { (*list).next };
        while !ptr::eq(link, list) {
            // SAFETY: The link is an inode's. It is left before the inode is moved.
            let (inode, next) = unsafe { (inode_of(link), (*link).next) };
            let sync = Sync { sb, dirtied_before };
            if sb.is_null() && !after(dirtied_when(inode), dirtied_before) || sync.has(inode) {
                Self::set_queued(inode, true);
                Self::move_before(link, list!(self, b_io));
                moved += 1;
            }
            link = next;
        }
        moved
    }

    /// Moves `inode`, which is in one of these lists, to `b_dontcache` if it may belong there. Its page
    /// cache may be locked.
    pub fn adopt(&mut self, inode: &Inode) {
        let pages = pages_of(inode);
        if pages.may_have_dontcache_dirty() && self.have(inode) {
            pages.mark_dontcache_listed();
            Self::move_behind(link_of(inode), list!(self, b_dontcache));
        }
    }

    /// Puts `inode` where a kick finds it. Its page cache may have dirty dropbehind folios, and it
    /// was in another list when the first of them came.
    ///
    /// What others have queued is only brought to the front: it stays theirs.
    pub fn promote(&mut self, inode: &Inode) {
        let pages = pages_of(inode);
        let (raw, link) = (inode.as_raw(), link_of(inode));
        // SAFETY: The inode is live. Its lock nests in that of the lists.
        unsafe { bindings::spin_lock(&raw mut (*raw).i_lock) };
        // SAFETY: As above.
        let state = unsafe { bindings::inode_state_read(raw) };
        let has = |flags| state & flags != 0;
        if pages.is_dontcache_unlisted() && self.is_wb_of(inode) {
            // Who is about to put it into a list, or has it, will see that it may have.
            pages.mark_dontcache_listed();
            let free = has(bindings::inode_state_flags_enum_I_FREEING);
            let dirty = has(DIRTY);
            let listed = self.have(inode);
            if listed && has(bindings::inode_state_flags_enum_I_SYNC_QUEUED) {
                Self::move_before(link, list!(self, b_io));
            } else if listed && dirty && !free {
                let list = list!(self, b_dontcache);
                // SAFETY: The inode is live, both locks are held, and the list is the wb's.
                unsafe { bindings::rust_wb_move_inode(raw, self.wb.as_raw(), list) };
            }
        }
        // SAFETY: The lock was taken above.
        unsafe { bindings::spin_unlock(&raw mut (*raw).i_lock) };
    }
}

impl Sync {
    /// Whether the sync is to write `inode`.
    #[inline]
    fn has(&self, inode: &Inode) -> bool {
        // SAFETY: The inode is live, and its super block never changes.
        let sb = unsafe { (*inode.as_raw()).i_sb };
        ptr::eq(sb, self.sb) && !after(dirtied_when(inode), self.dirtied_before)
    }
}

impl FlusherLists<'_> {
    /// The next inode of `b_dontcache`; before these, of what other work has queued of them, and was
    /// interrupted. That lies at the end of `b_more_io` once it is parked.
    #[inline]
    fn candidate(&self) -> Option<Candidate> {
        if self.sync.is_none() {
            if let Some(link) = Lists::last(list!(self.lists, b_more_io)) {
                // SAFETY: The link is an inode's, and the lock is held.
                if pages_of(unsafe { inode_of(link) }).may_have_dontcache_dirty() {
                    return Some(Candidate { link, queued: true });
                }
            }
        }
        Some(Candidate {
            link: Lists::last(list!(self.lists, b_dontcache))?,
            queued: false,
        })
    }
}

impl round::Lists for FlusherLists<'_> {
    #[inline]
    fn park(&mut self) {
        let (io, more_io) = (list!(self.lists, b_io), list!(self.lists, b_more_io));
        // SAFETY: Both lists are the wb's, and the lock is held.
        unsafe { bindings::list_splice_tail_init(io, more_io) };
    }

    #[inline]
    fn next(&mut self, looks: usize) -> Option<Next> {
        self.next = self.candidate();
        // SAFETY: The link is an inode's, and the lock is held while the reference is used.
        let inode = unsafe { inode_of(self.next?.link) };
        if self.sync.is_some_and(|sync| sync.has(inode)) {
            return Some(Next::OfSync);
        }
        Some(Next::Ours(pages_of(inode).look_for_dontcache_dirty(looks)))
    }

    #[inline]
    fn queue_next(&mut self, sure: bool) {
        let Some(Candidate { link, .. }) = self.next.take() else {
            return;
        };
        // SAFETY: The link is an inode's, and the lock is held while the reference is used.
        Lists::set_queued(unsafe { inode_of(link) }, true);
        let io = list!(self.lists, b_io);
        if !sure {
            Lists::move_behind(link, io);
        } else if self.first_sure.is_null() {
            Lists::move_before(link, io);
            self.first_sure = link;
        } else {
            Lists::move_before(link, self.first_sure);
            self.first_sure = link;
        }
    }

    fn release_next(&mut self) {
        // What other work has queued stays queued.
        let Some(Candidate {
            link,
            queued: false,
        }) = self.next.take()
        else {
            return;
        };
        // SAFETY: The link is an inode's, and the lock is held while the reference is used.
        let inode = unsafe { inode_of(link) };
        let list = list!(self.lists, b_dirty);
        // SAFETY: The list is the wb's, and the lock is held.
        let mut place = unsafe { (*list).next };
        for _ in 0..PLACES {
            // SAFETY: What is not the list itself is an inode's link in it.
            if ptr::eq(place, list)
                || !after(
                    dirtied_when(unsafe { inode_of(place) }),
                    dirtied_when(inode),
                )
            {
                Lists::set_queued(inode, false);
                return Lists::move_before(link, place);
            }
            // SAFETY: As above.
            place = unsafe { (*place).next };
        }
        // Too far: the next work of the flusher writes it, early rather than late.
        Lists::set_queued(inode, true);
        Lists::move_behind(link, list!(self.lists, b_more_io));
    }

    #[inline]
    fn hand_over_next(&mut self) {
        let Some(Candidate { link, .. }) = self.next.take() else {
            return;
        };
        // SAFETY: The link is an inode's, and the lock is held while the reference is used.
        Lists::set_queued(unsafe { inode_of(link) }, true);
        Lists::move_behind(link, list!(self.lists, b_more_io));
    }

    #[inline]
    fn write(&mut self, pages: i64) -> Written {
        self.next = None;
        self.first_sure = ptr::null_mut();
        let mut left = pages as c_long;
        // SAFETY: The lock is held, in the flusher's context. It is let go and taken again; no link
        // is kept meanwhile.
        let progress = unsafe { bindings::rust_wb_write_queued(self.lists.wb.as_raw(), &mut left) };
        Written {
            pages: pages.saturating_sub(left as i64),
            progress: progress > 0,
        }
    }

    #[inline]
    fn unqueue(&mut self) {
        self.next = None;
        self.first_sure = ptr::null_mut();
        let (io, queue) = (list!(self.lists, b_io), list!(self.lists, b_dontcache));
        // SAFETY: Both lists are the wb's, and the lock is held.
        unsafe { bindings::list_splice_tail_init(io, queue) };
    }
}
