// SPDX-License-Identifier: GPL-2.0

//! The flusher of a `bdi_writeback`, and its lists of inodes.
//!
//! | list | inodes | order |
//! | --- | --- | --- |
//! | `b_dontcache` | may have dirty dropbehind folios | last come first; taken from the end |
//! | `b_dirty` | other dirty ones | last dirtied first |
//! | `b_io` | queued, written from the end | |
//! | `b_more_io` | to be queued again | what has waited longest is last |
//!
//! All are under one lock ([`Lists`]), which is let go where an inode is written. So nothing of a
//! list is ever handed out: the methods speak of the *next* inode of `b_dontcache`, and one that
//! writes borrows the lists for itself alone. Between two calls every inode is in a list of the wb,
//! whatever becomes of the caller.
//!
//! Which inodes belong into `b_dontcache` is known in `dontcache_list`.
//!
//! C header: [`include/linux/backing-dev-defs.h`](srctree/include/linux/backing-dev-defs.h)

use crate::{
    backing_dev::{
        BdiWriteback,
        InodeList as List, //
    },
    bindings,
    ffi::c_long,
    fs::{
        AddressSpace,
        Inode, //
    },
    sched::{
        after,
        until, //
    },
    time::{
        msecs_to_jiffies,
        Jiffies, //
    },
    types::NotThreadSafe,
    wb_pace::{
        bounds,
        DiskWrites,
        WbPace,
        PORTION, //
    },
    writeback::{
        kick::{
            Request,
            Wb,
            Why, //
        },
        pace::Room,
        round::{
            self,
            Next,
            Portion,
            Written, //
        }, //
    }, //
};
use core::{
    iter::successors,
    mem::MaybeUninit,
    ops::Deref,
    ptr, //
};

/// `I_DIRTY`, which is a sum of flags.
const DIRTY: u32 = bindings::inode_state_flags_enum_I_DIRTY_SYNC
    | bindings::inode_state_flags_enum_I_DIRTY_DATASYNC
    | bindings::inode_state_flags_enum_I_DIRTY_PAGES;

/// Work of the flusher has taken the inode from its list.
const QUEUED: u32 = bindings::inode_state_flags_enum_I_SYNC_QUEUED;

/// What C traces a round with.
type Reason = bindings::wb_reason;

/// For how many inodes of `b_dirty` the place of another one is sought.
const PLACES: usize = 256;

/// The context of a wb's flusher: its work item, which runs once at a time, and may sleep.
///
/// # Invariants
///
/// The current context is that of the flusher of `wb`, holds no lock, and stays so for `'a`.
pub struct Flusher<'a> {
    wb: &'a BdiWriteback,
    sync: Option<Due>,
    reason: Reason,
    _not_send: NotThreadSafe,
}

/// Work that has to write what was dirtied before a time, of one super block unless that is null.
#[derive(Clone, Copy)]
struct Due {
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
            reason: bindings::wb_reason_WB_REASON_DONTCACHE,
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
            sync: (!sb.is_null()).then_some(Due { sb, dirtied_before }),
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

    /// Does something while requests of the current task are gathered before they go to their
    /// device.
    ///
    /// C counterpart: `blk_start_plug()` and `blk_finish_plug()`.
    #[inline]
    pub fn plugged<R>(&mut self, work: impl FnOnce(&mut Self) -> R) -> R {
        let mut plug = MaybeUninit::uninit();
        // SAFETY: The plug is on the stack of the current task, is not moved, and is finished
        // before it goes.
        unsafe { bindings::blk_start_plug(plug.as_mut_ptr()) };
        let done = work(self);
        // SAFETY: Started above.
        unsafe { bindings::blk_finish_plug(plug.as_mut_ptr()) };
        done
    }

    /// Has what is written from now on traced with the reason for that.
    #[inline]
    pub fn set_reason(&mut self, why: Why) {
        self.reason = match why {
            _ if self.is_beside_sync() => bindings::wb_reason_WB_REASON_DONTCACHE_SYNC,
            Why::Size => bindings::wb_reason_WB_REASON_DONTCACHE,
            Why::Deadline => bindings::wb_reason_WB_REASON_DONTCACHE_DEADLINE,
            Why::Left => bindings::wb_reason_WB_REASON_DONTCACHE_LEFT,
        };
    }

    /// The pace of its rounds.
    #[inline]
    pub fn pace(&self) -> WbPace<'a> {
        WbPace::of(self.wb)
    }

    /// Sets that by what the device has written: a round begins, for this.
    pub fn adapt(&self, asked: Request) {
        // SAFETY: The wb is live, and this its flusher's context, without a lock.
        let background = unsafe { bindings::rust_wb_background(self.wb.as_raw()) };
        self.pace()
            .adapt(asked, self.disk_writes(), background as u64);
    }

    /// What its disk has written. None if it is no disk.
    fn disk_writes(&self) -> Option<DiskWrites> {
        let mut disk = MaybeUninit::uninit();
        // SAFETY: The wb is live, and this its flusher's context, so that the device is not gone. C
        // has filled the number if it says so.
        unsafe {
            bindings::wb_disk_writes(self.wb.as_raw(), disk.as_mut_ptr())
                .then(|| disk.assume_init())
        }
    }

    /// Has the flusher run again in `milliseconds`, if there are any. Nothing that is due earlier
    /// gets later: what is old is written when it would be if no round had been served meanwhile,
    /// for which C would begin to count anew.
    pub fn run_again_within(&self, milliseconds: Option<u32>) {
        let both = [milliseconds, self.periodic_in()];
        if let Some(milliseconds) = both.into_iter().flatten().min() {
            self.wb.run_within(milliseconds);
        }
    }

    /// Whether there are dirty inodes without dirty dropbehind pages, or such as others have
    /// queued. May change at any time.
    pub fn has_others(&self) -> bool {
        [List::Io, List::MoreIo, List::Dirty]
            .into_iter()
            .any(|list| self.wb.has_inodes(list))
    }

    /// Whether it runs for want of memory, in the place of others.
    #[inline]
    pub fn is_rescuer(&self) -> bool {
        // SAFETY: It may be asked anywhere.
        unsafe { bindings::current_is_workqueue_rescuer() }
    }

    /// In how many milliseconds what is old is to be written. None if nothing is to, or if no round
    /// was served since that was done last.
    fn periodic_in(&self) -> Option<u32> {
        // SAFETY: The wb is live, and its flusher alone writes this field.
        let last = unsafe { (*self.wb.as_raw()).last_old_flush };
        if !self.pace().was_served_after(last) || !self.wb.has_dirty_io() {
            return None;
        }
        // SAFETY: The variable is one word, which changes at any time.
        let interval = unsafe { (&raw const bindings::dirty_writeback_interval).read_volatile() };
        if interval == 0 {
            return None;
        }
        let milliseconds = interval.saturating_mul(10);
        let next = last.wrapping_add(msecs_to_jiffies(milliseconds));
        // It has just been looked for what is old, but by a rescuer, which does not.
        Some(until(next).unwrap_or(milliseconds))
    }
}

impl round::Flusher for Flusher<'_> {
    const PORTION: i64 = PORTION;

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
            reason: self.reason,
            next: None,
            first_sure: None,
        }
    }

    #[inline]
    fn others_wait(&self) -> bool {
        self.wb.has_work()
    }

    #[inline]
    fn room(&mut self, first: bool) -> Room {
        self.pace().room(self.disk_writes(), first)
    }
}

/// The lists of a wb, locked.
///
/// # Invariants
///
/// - The `list_lock` of `wb` is held by the current context.
/// - Every inode in a list of the wb is live while the lock is held: who frees an inode takes it
///   out first, under the lock.
pub struct Lists<'a> {
    wb: &'a BdiWriteback,
    _not_send: NotThreadSafe,
}

/// The lock of a wb's lists. Dropping it unlocks them. The lists are only lent, and not to be
/// changed for others: those would be unlocked then.
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
    sync: Option<Due>,
    reason: Reason,
    next: Option<Candidate>,
    first_sure: Option<Link>,
}

/// An inode that was looked at.
#[derive(Clone, Copy)]
struct Candidate {
    link: Link,
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

/// The link of an inode.
///
/// # Invariants
///
/// It is in a list of a wb whose lock has been held since it was found there. So the inode is live,
/// and only who holds the lock moves it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Link(*mut bindings::list_head);

/// Where an inode is moved to.
#[derive(Clone, Copy)]
enum To {
    /// In front of all in a list.
    Front(List),
    /// Behind all in a list: the next.
    Back(List),
    /// In front of this one.
    Before(Link),
}

impl Link {
    /// The link of `inode`, whichever list it is in.
    #[inline]
    fn raw(inode: &Inode) -> *mut bindings::list_head {
        // SAFETY: The inode is live, so its field can be named.
        unsafe { &raw mut (*inode.as_raw()).i_io_list }
    }

    #[inline]
    fn inode(&self) -> &Inode {
        // SAFETY: By the type invariants the link is a live inode's. It is only kept while the lock
        // is held.
        unsafe { Inode::from_raw(crate::container_of!(self.0, bindings::inode, i_io_list)) }
    }
}

/// The page cache of an inode.
#[inline]
fn pages_of(inode: &Inode) -> &AddressSpace {
    // SAFETY: The inode is live, so is its own page cache: that of a device's node is the block
    // device's, and not meant.
    unsafe { AddressSpace::from_raw(&raw mut (*inode.as_raw()).i_data) }
}

/// The flags of an inode, whose lock is held.
#[inline]
fn state_of(inode: &Inode) -> u32 {
    // SAFETY: The inode is live. Without its lock they would be of no worth, but one word.
    unsafe { bindings::inode_state_read(inode.as_raw()) }
}

#[inline]
fn dirtied_when(inode: &Inode) -> Jiffies {
    // SAFETY: The inode is live; who writes the field holds the lock of the lists it is in.
    unsafe { (&raw const (*inode.as_raw()).dirtied_when).read_volatile() }
}

impl Lists<'_> {
    /// Adopts lists that C has locked.
    ///
    /// # Safety
    ///
    /// `wb` must point at a wb that is not freed for the lifetime, whose `list_lock` the current
    /// context holds for as long.
    #[inline]
    pub unsafe fn assume_locked(wb: *mut bindings::bdi_writeback) -> Self {
        // INVARIANT: The caller promises the lock.
        Self {
            // SAFETY: The caller promises a live wb.
            wb: unsafe { BdiWriteback::from_raw(wb) },
            _not_send: NotThreadSafe,
        }
    }

    /// What is not the head of `list` is an inode's link in it.
    #[inline]
    fn link(&self, list: List, link: *mut bindings::list_head) -> Option<Link> {
        // INVARIANT: Found in the list, whose lock is held.
        (!ptr::eq(link, self.wb.head(list))).then_some(Link(link))
    }

    #[inline]
    fn first(&self, list: List) -> Option<Link> {
        // SAFETY: The list only changes under the lock, which is held.
        self.link(list, unsafe { (*self.wb.head(list)).next })
    }

    #[inline]
    fn last(&self, list: List) -> Option<Link> {
        // SAFETY: The list only changes under the lock, which is held.
        self.link(list, unsafe { (*self.wb.head(list)).prev })
    }

    /// The one behind `link`, which is in `list`.
    #[inline]
    fn behind(&self, list: List, link: Link) -> Option<Link> {
        // SAFETY: By the type invariants the link is one of a list, which only changes under the
        // lock.
        self.link(list, unsafe { (*link.0).next })
    }

    #[inline]
    fn move_to(&self, link: Link, to: To) {
        // SAFETY: By the type invariants the link is in a list. Both it and the place are the wb's,
        // whose lock is held.
        unsafe {
            match to {
                To::Front(list) => bindings::list_move(link.0, self.wb.head(list)),
                To::Back(list) => bindings::list_move_tail(link.0, self.wb.head(list)),
                To::Before(place) => bindings::list_move_tail(link.0, place.0),
            }
        }
    }

    /// Moves all inodes of a list behind those of another one.
    #[inline]
    fn move_all(&self, from: List, to: List) {
        // SAFETY: Both lists are the wb's, whose lock is held.
        unsafe { bindings::list_splice_tail_init(self.wb.head(from), self.wb.head(to)) };
    }

    /// The link of `inode`, if it is in one of these lists.
    #[inline]
    fn find(&self, inode: &Inode) -> Option<Link> {
        let link = Link::raw(inode);
        // SAFETY: The inode is live, and if it has this wb it keeps it, for the lock is held. Its
        // link is initialised with it, and then only changes under the lock.
        let listed = unsafe {
            ptr::eq(bindings::inode_to_wb(inode.as_raw()), self.wb.as_raw())
                && !ptr::eq((*link).next, link)
        };
        // INVARIANT: It is in a list, and the lock is held.
        listed.then_some(Link(link))
    }

    /// Marks the inode as queued, or as not queued, while it is moved.
    #[inline]
    fn set_queued(&self, link: Link, queued: bool) {
        let raw = link.inode().as_raw();
        // SAFETY: The inode is live. Its lock nests in that of the lists, and is held for this
        // alone.
        unsafe {
            bindings::spin_lock(&raw mut (*raw).i_lock);
            if queued {
                bindings::inode_state_set(raw, QUEUED);
            } else {
                bindings::inode_state_clear(raw, QUEUED);
            }
            bindings::spin_unlock(&raw mut (*raw).i_lock);
        }
    }

    /// Queues, for work that writes what was dirtied before `dirtied_before`, those of
    /// `b_dontcache`, behind all that is queued: they are written first. Returns how many.
    ///
    /// Work for one super block, as for `sync()`, takes its inodes only. Other work takes none if a
    /// round is to come and anything else is queued. A round sets that aside, so that the work
    /// comes here again: beside a writer who is faster than the device it would write his inode
    /// each time, and nothing else ever.
    ///
    /// C counterpart: `move_expired_inodes()`, which stops at the first that is too new.
    pub fn queue_older(&self, sb: *mut bindings::super_block, dirtied_before: Jiffies) -> usize {
        let waits_for_round = self.wb.is_pending() || self.wb.is_left();
        if sb.is_null() && waits_for_round && self.first(List::Io).is_some() {
            return 0;
        }
        let due = Due { sb, dirtied_before };
        let mut moved = 0;
        let mut next = self.first(List::Dontcache);
        while let Some(link) = next {
            next = self.behind(List::Dontcache, link);
            if due.has(link.inode()) {
                self.set_queued(link, true);
                self.move_to(link, To::Back(List::Io));
                moved += 1;
            }
        }
        moved
    }

    /// How many inodes wait for a round, `most` of them.
    fn waiting(&self, most: usize) -> usize {
        let behind = |link: &Link| self.behind(List::Dontcache, *link);
        successors(self.first(List::Dontcache), behind)
            .take(most)
            .count()
    }

    /// Moves `inode`, if it is in one of these lists, to `b_dontcache` if it may belong there. Its
    /// page cache may be locked.
    pub fn adopt(&self, inode: &Inode) {
        let pages = pages_of(inode);
        if !pages.may_have_dontcache_dirty() {
            return;
        }
        if let Some(link) = self.find(inode) {
            pages.mark_dontcache_listed();
            self.move_to(link, To::Front(List::Dontcache));
        }
    }

    /// Whether the inode of `cache`, which gets into another of these lists, belongs into
    /// `b_dontcache`: a round will find it there. The inode's lock is held.
    pub fn keep(&self, cache: &AddressSpace) -> bool {
        let keeps = cache.keep_dontcache_listed();
        // What comes back from a queue was counted before.
        if keeps && state_of(cache.host()) & QUEUED == 0 {
            WbPace::of(self.wb).add_inode();
        }
        keeps
    }

    /// Puts `inode` where a kick finds it. Its page cache may have dirty dropbehind folios, and it
    /// was in another list when the first of them came.
    ///
    /// What others have queued is only brought to the front: it stays theirs. That waits in
    /// `b_more_io` while a round writes what is in `b_io`. If it got in there the round would write
    /// it beside a sync, and change its time: the sync would miss what is old of it.
    pub fn promote(&self, inode: &Inode) {
        let pages = pages_of(inode);
        let raw = inode.as_raw();
        // SAFETY: The inode is live. Its lock nests in that of the lists.
        unsafe { bindings::spin_lock(&raw mut (*raw).i_lock) };
        if pages.is_dontcache_unlisted() {
            // Who is about to put it into a list, or has it, will see that it may have.
            pages.mark_dontcache_listed();
            WbPace::of(self.wb).add_inode();
            let state = state_of(inode);
            let is = |flags| state & flags != 0;
            match self.find(inode) {
                Some(link) if is(QUEUED) => {
                    let list = if WbPace::of(self.wb).is_writing() {
                        List::MoreIo
                    } else {
                        List::Io
                    };
                    self.move_to(link, To::Back(list));
                }
                Some(_) if is(DIRTY) && !is(bindings::inode_state_flags_enum_I_FREEING) => {
                    let list = self.wb.head(List::Dontcache);
                    // SAFETY: The inode is live, both locks are held, and the list is the wb's.
                    unsafe { bindings::rust_wb_move_inode(raw, self.wb.as_raw(), list) };
                }
                _ => {}
            }
        }
        // SAFETY: The lock was taken above.
        unsafe { bindings::spin_unlock(&raw mut (*raw).i_lock) };
    }
}

impl Due {
    /// Whether the work is to write `inode`.
    #[inline]
    fn has(&self, inode: &Inode) -> bool {
        // SAFETY: The inode is live, and its super block never changes.
        let sb = unsafe { (*inode.as_raw()).i_sb };
        (self.sb.is_null() || ptr::eq(sb, self.sb))
            && !after(dirtied_when(inode), self.dirtied_before)
    }
}

impl FlusherLists<'_> {
    /// The next inode of `b_dontcache`; before these, of what other work has queued of them, and
    /// was interrupted. That lies at the end of `b_more_io` once it is parked.
    #[inline]
    fn candidate(&self) -> Option<Candidate> {
        let interrupted = match self.sync {
            None => self.lists.last(List::MoreIo),
            Some(_) => None,
        };
        if let Some(link) = interrupted {
            if pages_of(link.inode()).may_have_dontcache_dirty() {
                return Some(Candidate { link, queued: true });
            }
        }
        Some(Candidate {
            link: self.lists.last(List::Dontcache)?,
            queued: false,
        })
    }

    /// Queues an inode for somebody.
    #[inline]
    fn queue(&mut self, link: Link, to: To) {
        self.lists.set_queued(link, true);
        self.lists.move_to(link, to);
    }
}

impl round::Lists for FlusherLists<'_> {
    #[inline]
    fn park(&mut self) {
        self.lists.move_all(List::Io, List::MoreIo);
    }

    #[inline]
    fn next(&mut self, looks: usize) -> Option<Next> {
        self.next = self.candidate();
        let link = self.next?.link;
        let inode = link.inode();
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
        if !sure {
            return self.queue(link, To::Front(List::Io));
        }
        let place = self.first_sure.replace(link);
        self.queue(link, place.map_or(To::Back(List::Io), To::Before));
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
        let dirtied = dirtied_when(link.inode());
        let mut place = self.lists.first(List::Dirty);
        for _ in 0..PLACES {
            let to = match place {
                Some(newer) if after(dirtied_when(newer.inode()), dirtied) => {
                    place = self.lists.behind(List::Dirty, newer);
                    continue;
                }
                Some(older) => To::Before(older),
                None => To::Back(List::Dirty),
            };
            self.lists.set_queued(link, false);
            return self.lists.move_to(link, to);
        }
        // Too far: the next work of the flusher writes it, early rather than late.
        self.queue(link, To::Front(List::MoreIo));
    }

    #[inline]
    fn hand_over_next(&mut self) {
        if let Some(Candidate { link, .. }) = self.next.take() {
            self.queue(link, To::Front(List::MoreIo));
        }
    }

    #[inline]
    fn write(&mut self, portion: Portion) -> Written {
        let pages = portion.pages;
        self.next = None;
        self.first_sure = None;
        let mut left = pages as c_long;
        let wb = self.lists.0.wb.as_raw();
        let pace = WbPace::of(self.lists.0.wb);
        pace.begin_writing(portion);
        // SAFETY: The lock is held, in the flusher's context. It is let go and taken again; no link
        // is kept meanwhile.
        let progress = unsafe { bindings::rust_wb_write_queued(wb, &mut left, self.reason) };
        let kept = pace.end_writing();
        Written {
            pages: pages.saturating_sub(left as i64).saturating_sub(kept),
            kept,
            progress: progress > 0,
            all: self.lists.first(List::Io).is_none(),
        }
    }

    #[inline]
    fn unqueue(&mut self) {
        self.next = None;
        self.first_sure = None;
        self.lists.move_all(List::Io, List::Dontcache);
        // Those that are in the queue again count, as if each had just come.
        let waiting = self.lists.waiting(bounds().most_inodes());
        WbPace::of(self.lists.0.wb).set_inodes(waiting as u32);
    }
}
