// SPDX-License-Identifier: GPL-2.0

//! The flusher of a `bdi_writeback`, and its lists of inodes.
//!
//! | list | inodes | order |
//! | --- | --- | --- |
//! | `b_dontcache` | may have dirty dropbehind folios | newest first; taken from the tail |
//! | `b_dirty` | other dirty inodes | last dirtied first |
//! | `b_io` | queued, written from the tail | |
//! | `b_more_io` | to be requeued | may have dirty dropbehind folios: last |
//!
//! One lock ([`Lists`]) protects all lists. It is released while an inode is written. So no method
//! hands out a list entry: the methods refer to the *next* inode of the round, and a method that
//! writes borrows the lists exclusively. Between two calls every inode is in a list of the wb, even
//! if the caller stops.
//!
//! [`crate::dontcache`] has the flags of a page cache that say whether its inode belongs into
//! `b_dontcache`.
//!
//! C header: [`include/linux/backing-dev-defs.h`](srctree/include/linux/backing-dev-defs.h)

use crate::{
    backing_dev::BdiWriteback,
    bindings,
    dontcache_wb::{
        kick_at,
        PORTION, //
    },
    ffi::c_long,
    fs::{
        AddressSpace,
        Inode, //
    },
    sched::after,
    task::might_sleep,
    time::Jiffies,
    types::NotThreadSafe,
    writeback::{
        kick::{
            self,
            Bit,
            Wb, //
        },
        round::{
            self,
            Written,
            LOOKS, //
        }, //
    }, //
};
use core::ptr;

/// The inode is queued: it is in `b_io` or `b_more_io`, and stays there if it is made dirty. The
/// flag stays set if a round puts the inode back into `b_dontcache` unwritten, until the next round
/// or other work writes the inode.
const QUEUED: u32 = bindings::inode_state_flags_enum_I_SYNC_QUEUED;

/// A list of inodes of a wb.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum List {
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
#[inline]
unsafe fn has_entries(head: *mut bindings::list_head) -> bool {
    // SAFETY: The caller promises a live head. Concurrent writers write its word whole.
    !ptr::eq(unsafe { (&raw const (*head).next).read_volatile() }, head)
}

impl BdiWriteback {
    /// The head of `list`.
    #[inline]
    pub(crate) fn head(&self, list: List) -> *mut bindings::list_head {
        let wb = self.as_raw();
        // SAFETY: The wb is live by the type invariants, so pointers to its fields are valid.
        unsafe {
            match list {
                List::Dontcache => &raw mut (*wb).b_dontcache,
                List::Dirty => &raw mut (*wb).b_dirty,
                List::Io => &raw mut (*wb).b_io,
                List::MoreIo => &raw mut (*wb).b_more_io,
            }
        }
    }

    /// Whether `list` has inodes. Unordered.
    #[inline]
    pub(crate) fn has_inodes(&self, list: List) -> bool {
        // SAFETY: The wb is live by the type invariants, and its lists are initialised with it.
        unsafe { has_entries(self.head(list)) }
    }

    /// Whether work is queued for the flusher. Unordered.
    pub(crate) fn has_work(&self) -> bool {
        // SAFETY: As in `has_inodes()`.
        unsafe { has_entries(&raw mut (*self.as_raw()).work_list) }
    }

    /// Has the flusher run in `milliseconds` or earlier, if the device is still registered. An
    /// earlier run is not delayed.
    ///
    /// Context: any but NMI, outside of the lock of the wb's work.
    ///
    /// C counterpart: `wb_wakeup_delayed()`, which does not bring a later run forward.
    pub fn run_within(&self, milliseconds: u32) {
        // SAFETY: The wb is live by the type invariants; its lock and its delayed work are
        // initialised.
        unsafe { bindings::wb_run_within(self.as_raw(), milliseconds) };
    }
}

/// The context of a wb's flusher: its work item, which runs once at a time, and may sleep.
///
/// # Invariants
///
/// The current context is that of the flusher of `wb`, without a lock, for all of `'a`.
pub struct Flusher<'a> {
    wb: &'a BdiWriteback,
    sync: Option<&'a Due>,
    _not_send: NotThreadSafe,
}

/// Work for the inodes that were dirtied before a time, of one super block unless `sb` is null.
#[derive(Clone, Copy)]
pub struct Due {
    sb: *mut bindings::super_block,
    dirtied_before: Jiffies,
}

impl<'a> Flusher<'a> {
    /// The flusher that runs in the current context. `sync` is the work for `sync()` or the like
    /// that the flusher processes at the moment. Rounds skip the inodes that this work is to write.
    ///
    /// # Safety
    ///
    /// `wb` must point at a wb that is not freed for `'a`, and the current context must be that of
    /// its flusher, without a lock, for all of `'a`.
    #[inline]
    pub unsafe fn assume_running(wb: *mut bindings::bdi_writeback, sync: Option<&'a Due>) -> Self {
        might_sleep();
        // INVARIANT: The caller promises the context.
        Self {
            // SAFETY: The caller promises a live wb.
            wb: unsafe { BdiWriteback::from_raw(wb) },
            sync,
            _not_send: NotThreadSafe,
        }
    }

    /// The flusher's wb.
    pub fn wb(&self) -> &'a BdiWriteback {
        self.wb
    }

    /// Ends a round that was to write `counted` pages.
    pub fn end_round(&self, counted: i64, mut round: round::Ended) {
        // SAFETY: The wb is live, and this is its flusher's context, without a lock.
        let background = unsafe { bindings::wb_background_pages(self.wb.as_raw()) };
        if counted > 0 && !round.has_spared_the_device() {
            round.again_ms = self.wb.device_limit().err().or(round.again_ms);
            self.wb.serve();
        }
        kick::ended(self.wb, counted, kick_at(background as u64), round);
    }

    /// Whether the flusher runs in a rescuer, because memory is short.
    pub fn is_rescuer(&self) -> bool {
        // SAFETY: May be called in any context.
        unsafe { bindings::current_is_workqueue_rescuer() }
    }
}

impl round::Flusher for Flusher<'_> {
    const PORTION: i64 = PORTION;

    type Lists<'b>
        = FlusherLists<'b>
    where
        Self: 'b;

    fn lock_lists(&mut self) -> FlusherLists<'_> {
        // SAFETY: The wb is live, so its lock is initialised. By the type invariants the current
        // context does not hold it.
        unsafe { bindings::spin_lock(&raw mut (*self.wb.as_raw()).list_lock) };
        // INVARIANT: The lock was taken above, in the flusher's context.
        FlusherLists {
            lists: Lists {
                wb: self.wb,
                _not_send: NotThreadSafe,
            },
            sync: self.sync,
            next: None,
        }
    }

    fn others_wait(&self) -> bool {
        self.wb.has_work()
    }

    fn has_others(&self) -> bool {
        [List::Io, List::MoreIo, List::Dirty]
            .into_iter()
            .any(|list| self.wb.has_inodes(list))
    }

    fn served_ms_ago(&self) -> u64 {
        self.wb.served_ms_ago()
    }

    fn device_limit(&mut self) -> Result<i64, u32> {
        self.wb.device_limit()
    }
}

/// The lists of a wb, locked.
///
/// # Invariants
///
/// - The current context holds the `list_lock` of `wb`.
/// - Every inode in a list of the wb is live while the lock is held: an inode is taken out under
///   the lock before it is freed.
pub struct Lists<'a> {
    wb: &'a BdiWriteback,
    _not_send: NotThreadSafe,
}

/// The lists, locked by the flusher. Dropping the value unlocks them. Only the flusher queues
/// inodes. [`promote`] may move a queued one, which stays queued.
///
/// # Invariants
///
/// - The context is that of the flusher.
/// - This value has to release the lock of `lists`, which are never exchanged for others.
/// - `next` is None, or the link of an inode in a list of the wb whose lock has been held since it
///   was found.
pub struct FlusherLists<'a> {
    lists: Lists<'a>,
    sync: Option<&'a Due>,
    next: Option<Link>,
}

impl Drop for FlusherLists<'_> {
    fn drop(&mut self) {
        // SAFETY: By the type invariants the lock is held, and this value may release it.
        unsafe { bindings::spin_unlock(&raw mut (*self.lists.wb.as_raw()).list_lock) };
    }
}

/// The link of an inode.
///
/// # Invariants
///
/// The link is in a list of a wb whose lock has been held since it was found. So the inode is live,
/// and only the holder of the lock moves it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Link(*mut bindings::list_head);

impl Link {
    /// The link of `inode`, whichever list it is in.
    fn raw(inode: &Inode) -> *mut bindings::list_head {
        // SAFETY: The inode is live, so a pointer to its field is valid.
        unsafe { &raw mut (*inode.as_raw()).i_io_list }
    }

    fn inode(&self) -> &Inode {
        // SAFETY: By the type invariants the link is in a live inode. It is only kept while the
        // lock is held.
        unsafe { Inode::from_raw(crate::container_of!(self.0, bindings::inode, i_io_list)) }
    }
}

/// The page cache of an inode.
fn mapping_of(inode: &Inode) -> &AddressSpace {
    // SAFETY: The inode and its own page cache are live. (The node of a block device uses the page
    // cache of the device, which is not meant here.)
    unsafe { AddressSpace::from_raw(&raw mut (*inode.as_raw()).i_data) }
}

/// The flags of an inode. The caller holds the inode's lock.
fn state_of(inode: &Inode) -> u32 {
    // SAFETY: The inode is live; its flags are one word. Without the lock they would be stale.
    unsafe { bindings::inode_state_read(inode.as_raw()) }
}

fn dirtied_when(inode: &Inode) -> Jiffies {
    // SAFETY: The inode is live. The field is written under the lock of the inode's list.
    unsafe { (&raw const (*inode.as_raw()).dirtied_when).read_volatile() }
}

impl Lists<'_> {
    /// Adopts lists that C has locked.
    ///
    /// # Safety
    ///
    /// `wb` must point at a wb that is not freed for the lifetime, whose `list_lock` the current
    /// context holds for as long.
    pub unsafe fn assume_locked(wb: *mut bindings::bdi_writeback) -> Self {
        // SAFETY: The caller promises a live wb, and so a lock. Lockdep checks that it is held.
        unsafe { bindings::spin_assert_is_held(&raw mut (*wb).list_lock) };
        // INVARIANT: The caller promises the lock.
        Self {
            // SAFETY: The caller promises a live wb.
            wb: unsafe { BdiWriteback::from_raw(wb) },
            _not_send: NotThreadSafe,
        }
    }

    /// The link, unless it is the head of `list`.
    fn link(&self, list: List, link: *mut bindings::list_head) -> Option<Link> {
        // INVARIANT: Found in the list, whose lock is held.
        (!ptr::eq(link, self.wb.head(list))).then_some(Link(link))
    }

    fn first(&self, list: List) -> Option<Link> {
        // SAFETY: The list only changes under the lock, which is held.
        self.link(list, unsafe { (*self.wb.head(list)).next })
    }

    fn last(&self, list: List) -> Option<Link> {
        // SAFETY: The list only changes under the lock, which is held.
        self.link(list, unsafe { (*self.wb.head(list)).prev })
    }

    /// The link behind `link` in `list`.
    fn behind(&self, list: List, link: Link) -> Option<Link> {
        // SAFETY: By the type invariants the link is in a list, which only changes under the lock.
        self.link(list, unsafe { (*link.0).next })
    }

    /// Moves an inode to the front of a list.
    fn to_front(&self, link: Link, list: List) {
        // SAFETY: By the type invariants the link is in a list of the wb, whose lock is held.
        unsafe { bindings::list_move(link.0, self.wb.head(list)) };
    }

    /// Moves an inode to the end of a list, and so makes it the next.
    fn to_back(&self, link: Link, list: List) {
        // SAFETY: As above.
        unsafe { bindings::list_move_tail(link.0, self.wb.head(list)) };
    }

    /// Queues an inode in a list: at the tail if it may have dirty dropbehind folios, else at the
    /// head. Of queued inodes, a round looks at the last one.
    fn queue(&self, link: Link, list: List) {
        self.mark_queued(link);
        if mapping_of(link.inode()).may_have_dontcache_dirty() {
            self.to_back(link, list);
        } else {
            self.to_front(link, list);
        }
    }

    /// Moves all inodes of a list behind the inodes of another list.
    fn move_all(&self, from: List, to: List) {
        // SAFETY: Both lists belong to the wb, whose lock is held.
        unsafe { bindings::list_splice_tail_init(self.wb.head(from), self.wb.head(to)) };
    }

    /// The link of `inode`, if it is in one of these lists.
    fn find(&self, inode: &Inode) -> Option<Link> {
        let link = Link::raw(inode);
        // SAFETY: The inode is live. If it has this wb it keeps the wb, because the lock is held.
        // Its link is initialised with it, and later only changes under the lock.
        let listed = unsafe {
            ptr::eq(bindings::inode_to_wb(inode.as_raw()), self.wb.as_raw())
                && !ptr::eq((*link).next, link)
        };
        // INVARIANT: The link is in a list, and the lock is held.
        listed.then_some(Link(link))
    }

    /// Marks an inode as queued. The caller moves it.
    fn mark_queued(&self, link: Link) {
        let raw = link.inode().as_raw();
        // SAFETY: The inode is live. Its lock nests in that of the lists, and is held only here.
        unsafe {
            bindings::spin_lock(&raw mut (*raw).i_lock);
            bindings::inode_state_set(raw, QUEUED);
            bindings::spin_unlock(&raw mut (*raw).i_lock);
        }
    }

    /// Queues the inodes of `b_dontcache` dirtied before `dirtied_before`, for work that writes
    /// them. Those with dropbehind folios are written first. Returns their number.
    ///
    /// [`round::work_takes_inodes`] decides whether. Work for one super block takes only its
    /// inodes.
    ///
    /// C counterpart: `move_expired_inodes()`, which stops at the first inode that is too new.
    pub fn queue_older(&self, sb: *mut bindings::super_block, dirtied_before: Jiffies) -> usize {
        let is_round_requested = self.wb.test(Bit::Pending) || self.wb.test(Bit::Delayed);
        let are_queued = self.wb.has_inodes(List::Io);
        if !round::work_takes_inodes(!sb.is_null(), is_round_requested, are_queued) {
            return 0;
        }
        let due = Due { sb, dirtied_before };
        let mut moved = 0;
        let mut next = self.first(List::Dontcache);
        while let Some(link) = next {
            next = self.behind(List::Dontcache, link);
            if due.has(link.inode()) {
                self.queue(link, List::Io);
                moved += 1;
            }
        }
        moved
    }

    /// Whether `inode`, which moves to another of these lists, belongs into `b_dontcache`. It does,
    /// unless a search of at most [`LOOKS`] dirty folios shows that no dirty folio is dropbehind.
    /// If it does, records that the flusher finds its folios there.
    ///
    /// The page cache of an inode that is about to move to another wb is not searched, because that
    /// move locks it. Then a flag that is old keeps the inode for a round.
    pub fn keeps(&self, inode: &Inode) -> bool {
        let mapping = mapping_of(inode);
        let keeps = if state_of(inode) & bindings::inode_state_flags_enum_I_WB_SWITCH != 0 {
            mapping.may_have_dontcache_dirty()
        } else {
            mapping.look_for_dontcache_dirty(LOOKS)
        };
        if keeps {
            mapping.mark_dontcache_listed();
        }
        keeps
    }

    /// Moves `inode`, if its page cache `mapping` has dirty dropbehind folios that the flusher
    /// would not find.
    fn promote(&self, inode: &Inode, mapping: &AddressSpace) {
        let (raw, wb) = (inode.as_raw(), self.wb.as_raw());
        // SAFETY: The inode is live. Its lock nests in that of the lists.
        unsafe { bindings::spin_lock(&raw mut (*raw).i_lock) };
        if mapping.is_dontcache_unlisted() {
            // A context that has the inode, or is about to list it, will see its dropbehind folios.
            mapping.mark_dontcache_listed();
            let state = state_of(inode);
            let is = |flags| state & flags != 0;
            match self.find(inode) {
                Some(link) if is(QUEUED) => {
                    // SAFETY: The wb is live. The field only changes under the lock, which is held.
                    let round_writes = unsafe { (*wb).dontcache_portion != 0 };
                    self.to_back(link, if round_writes { List::MoreIo } else { List::Io });
                }
                Some(_)
                    if is(bindings::I_DIRTY) && !is(bindings::inode_state_flags_enum_I_FREEING) =>
                {
                    let list = self.wb.head(List::Dontcache);
                    // SAFETY: The inode is live, both locks are held, and the list is the wb's.
                    unsafe { bindings::wb_move_inode(raw, wb, list) };
                }
                _ => {}
            }
        }
        // SAFETY: The lock was taken above.
        unsafe { bindings::spin_unlock(&raw mut (*raw).i_lock) };
    }
}

/// Puts the inode of `mapping` where a kick finds it. Its page cache may have dirty dropbehind
/// folios, and the inode was in another list when the first of them came. An inode that was never
/// dirtied is in no list.
///
/// An inode queued by other work stays queued, and only moves to the end that is written next.
/// While a round writes from `b_io`, queued inodes wait in `b_more_io`. In `b_io` the round would
/// write the inode and change its dirtied time: a sync that has queued the inode would miss its old
/// pages.
///
/// Context: a task, without the lock of the page cache.
pub fn promote(mapping: &AddressSpace) {
    if mapping.lock_pages().wb().is_none() {
        return;
    }
    let inode = mapping.host();
    // SAFETY: The inode is live. It has a wb, and always will have one. While the lock is held, the
    // inode keeps its wb.
    let wb = unsafe { bindings::wb_lock_list_of(inode.as_raw()) };
    // SAFETY: The lock was taken above, and is held until the function returns.
    unsafe { Lists::assume_locked(wb) }.promote(inode, mapping);
    // SAFETY: As above.
    unsafe { bindings::spin_unlock(&raw mut (*wb).list_lock) };
}

impl Due {
    /// Work for the inodes of `sb` that were dirtied before `dirtied_before`. None if the work is
    /// not for one super block: no task waits for such work for long.
    pub fn of_sync(sb: *mut bindings::super_block, dirtied_before: Jiffies) -> Option<Self> {
        (!sb.is_null()).then_some(Self { sb, dirtied_before })
    }

    /// Whether the work is to write `inode`.
    fn has(&self, inode: &Inode) -> bool {
        // SAFETY: The inode is live, and its super block never changes.
        let sb = unsafe { (*inode.as_raw()).i_sb };
        (self.sb.is_null() || ptr::eq(sb, self.sb))
            && !after(dirtied_when(inode), self.dirtied_before)
    }
}

impl round::Lists for FlusherLists<'_> {
    fn park(&mut self) {
        self.lists.move_all(List::Io, List::MoreIo);
    }

    /// An inode that may have dirty dropbehind folios, and that interrupted work has queued, comes
    /// before the inodes of `b_dontcache`. After `park()`, such inodes are at the end of
    /// `b_more_io`.
    fn next_is_ours(&mut self, looks: usize) -> Option<bool> {
        let interrupted = self.lists.last(List::MoreIo).filter(|link| {
            self.sync.is_none() && mapping_of(link.inode()).may_have_dontcache_dirty()
        });
        self.next = interrupted.or_else(|| self.lists.last(List::Dontcache));
        let inode = self.next.as_ref()?.inode();
        let is_of_sync = self.sync.is_some_and(|sync| sync.has(inode));
        Some(!is_of_sync && mapping_of(inode).look_for_dontcache_dirty(looks))
    }

    fn queue_next(&mut self) {
        if let Some(link) = self.next.take() {
            self.lists.mark_queued(link);
            self.lists.to_front(link, List::Io);
        }
    }

    fn leave_next(&mut self) {
        let Some(link) = self.next.take() else {
            return;
        };
        if self.sync.is_none_or(|sync| sync.has(link.inode())) {
            // An inode that the sync has to write is the next that it writes. An inode without
            // dropbehind folios, which other work has queued, no longer hides the inode behind it.
            self.lists.queue(link, List::MoreIo);
        } else {
            // The sync would write all that is in `b_more_io`, and might not end.
            self.lists.to_front(link, List::Dontcache);
        }
    }

    fn write(&mut self, pages: i64, portion: i64) -> Written {
        self.next = None;
        let wb = self.lists.wb;
        let mut left = pages as c_long;
        // SAFETY: The lock is held, in the flusher's context. C releases it and takes it again; no
        // link is kept meanwhile.
        let progress =
            unsafe { bindings::wb_write_queued(wb.as_raw(), &mut left, portion as c_long) };
        Written {
            pages: pages.saturating_sub(left as i64),
            progress: progress > 0,
            all: !wb.has_inodes(List::Io),
        }
    }

    fn unqueue(&mut self) {
        self.next = None;
        self.lists.move_all(List::Io, List::Dontcache);
    }
}
