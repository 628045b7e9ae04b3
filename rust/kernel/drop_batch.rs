// SPDX-License-Identifier: GPL-2.0

//! Folios that a task gathers to drop them together.
//!
//! Which ones, and when they are dropped, is decided in [`crate::writeback::together`].
//!
//! The task has several folios locked at a time, and their order in the file is not the order in
//! which others lock folios. That cannot hang: it only ever tries to lock, and between its first
//! folio and the end of its bio, or of a row of folios that an interrupt has left to it, it waits
//! for nothing. Those functions of a file system that end the folios of a bio take spinlocks and
//! free memory; what else it does at the end of a bio comes before or in other tasks. To take a
//! folio's buffers away (`Held::release`) without a gfp flag neither waits for I/O nor for another
//! folio. So whoever waits for one of the locks waits for as long as a bio's folios take, or such a
//! row. That holds where the task is one that submits, too: what it has locked itself it fails to
//! lock here, and the folio is tried again later.
//!
//! A folio that is locked and in a page cache keeps that, and the inode: eviction waits for the
//! lock. So nothing else has to hold the inode. After the last folio has left, the inode's lock
//! does, as in C.
//!
//! The batch of a CPU is found by the CPU, and is its owner's wherever that goes. A task that was
//! moved to another CPU and does not find its batch there drops what comes one by one.
//!
//! C header: [`include/linux/rust_drop_batch.h`](srctree/include/linux/rust_drop_batch.h)

use crate::{
    bindings,
    folio::{
        Folio,
        FolioGuard,
        LockedFolio, //
    },
    fs::AddressSpace,
    leftovers::Leftovers,
    percpu::{
        CpuGuard,
        PerCpu, //
    },
    sync::{
        aref::ARef,
        atomic::{
            Acquire,
            Atomic,
            Release, //
        }, //
    },
    task::Task,
    types::{
        NotThreadSafe,
        Opaque, //
    },
    writeback::{
        later::is_end,
        together::{
            to_front,
            Row,
            Seen,
            LARGE,
            MOST, //
        }, //
    }, //
};
use core::{
    mem::{
        forget,
        MaybeUninit, //
    },
    ops::{
        Deref,
        Range, //
    },
    ptr::{
        null_mut,
        NonNull, //
    },
    slice, //
};

impl Folio {
    /// What decides whether the folio is to be dropped, all at one moment. Unordered.
    #[inline(always)]
    pub fn seen(&self) -> Seen {
        let flags = self.flags();
        Seen {
            dropbehind: flags.dropbehind(),
            dirty: flags.dirty(),
            writeback: flags.writeback(),
        }
    }

    /// Takes dropbehind from a folio that has left the page cache.
    ///
    /// C counterpart: `folio_clear_dropbehind()`.
    #[inline(always)]
    fn clear_dropbehind(&self) {
        // SAFETY: The folio is live by the type invariants; the flag is cleared atomically.
        unsafe { bindings::folio_clear_dropbehind(self.as_raw()) };
    }
}

impl LockedFolio {
    /// Where the folio lies in its file.
    #[inline(always)]
    fn bytes(&self) -> Range<i64> {
        let start = self.pos();
        start..start.wrapping_add(self.size() as i64)
    }

    /// Whether the folio's file ends in it, and is open to be written to: who appends to the file
    /// writes to the folio again.
    #[inline(always)]
    pub fn is_appended_to(&self) -> bool {
        let mapping = self.raw_mapping();
        if mapping.is_null() {
            return false;
        }
        // SAFETY: By the type invariants of `Folio` it is a page cache that is not freed while the
        // folio is locked.
        let inode = unsafe { AddressSpace::from_raw(mapping) }.host();
        is_end(self.bytes(), inode.size()) && inode.is_open_for_write()
    }
}

impl FolioGuard<'_> {
    /// Drops the folio from its page cache, if it is dropbehind, clean and nobody maps it, and
    /// unlocks it. Keeps dropbehind if somebody's use of the folio prevents that.
    ///
    /// It takes the guard, from which the folio's buffers are borrowed: they are freed.
    ///
    /// Context: may sleep.
    ///
    /// C counterpart: `filemap_end_dropbehind()`.
    #[inline]
    pub fn end_dropbehind(self) {
        self.end(false);
    }

    /// With `spares_end` the folio that its file ends in is kept for a while, if somebody may
    /// append to that.
    #[inline(always)]
    fn end(self, spares_end: bool) {
        if self.raw_mapping().is_null() {
            // Somebody else has taken it out.
            if self.seen().may_go() {
                self.clear_dropbehind();
            }
            return;
        }
        // SAFETY: By the type invariants the folio is locked by this guard, from which nothing is
        // borrowed any more. Its lock keeps it in the page cache, and that has a reference on it
        // until it leaves; the guard was borrowed from who has another.
        unsafe { drop_locked(NonNull::from(&**self).cast(), spares_end) };
    }
}

/// Where folios are gathered (`struct rust_drop_batch`): a CPU's share.
///
/// # Invariants
///
/// - Instances are initialised and never freed, and only accessed by what is here.
/// - `owner` is null, or a task that has made it itself. All else is the owner's: `core` is a
///   [`Row`], and `folios` has places for [`MOST`] folios. Without an owner it has none.
#[repr(transparent)]
pub struct DropBatch(Opaque<bindings::rust_drop_batch>);

// SAFETY: Others than the owner only access `owner`, atomically.
unsafe impl Sync for DropBatch {}

const _: () = {
    type Storage = [usize; bindings::RUST_DROP_BATCH_CORE as usize];
    assert!(size_of::<Row>() == size_of::<Storage>());
    assert!(align_of::<Row>() == align_of::<Storage>());
    assert!(MOST == bindings::FOLIO_BATCH_SIZE as usize);
};

impl DropBatch {
    /// Those of all CPUs.
    #[inline(always)]
    pub fn per_cpu() -> PerCpu<Self> {
        // SAFETY: C defines them for each possible CPU, as zeroes, which is what empty ones without
        // an owner are. `Self` is transparent over them.
        unsafe { PerCpu::from_raw((&raw mut bindings::rust_drop_batches).cast()) }
    }

    #[inline(always)]
    fn owner(&self) -> &Atomic<*mut bindings::task_struct> {
        // SAFETY: The field lives by the type invariants. It is only accessed by this, and read in
        // one load by C.
        unsafe { Atomic::from_ptr(&raw mut (*self.0.get()).owner) }
    }

    /// Has the current task gather here, if nobody else does.
    ///
    /// Context: a task, which waits for no folio's lock until it drops what is returned.
    #[inline(always)]
    pub fn begin(&'static self) -> Option<OwnDropBatch> {
        // Pairs with the release by the owner before.
        self.owner()
            .cmpxchg(null_mut(), Task::current_raw(), Acquire)
            .ok()?;
        // INVARIANT: The current task is the owner since now.
        Some(OwnDropBatch {
            batch: self,
            _not_send: NotThreadSafe,
        })
    }
}

/// A folio that is to be dropped.
///
/// # Invariants
///
/// As long as the value is used, the folio is locked by the current task and nothing is borrowed
/// from its lock; and it is in a page cache, or has left it by [`remove`]. Either way it has the
/// references of the page cache, which cannot take them while it is locked.
#[repr(transparent)]
struct Held(NonNull<bindings::folio>);

impl Deref for Held {
    type Target = LockedFolio;

    #[inline(always)]
    fn deref(&self) -> &LockedFolio {
        // SAFETY: By the type invariants it is locked for as long as `self` is borrowed. What frees
        // its buffers borrows `self` exclusively.
        unsafe { LockedFolio::assume_locked(self.0.as_ptr()) }
    }
}

impl Held {
    /// Takes from the folio what its file system has attached to it. Returns whether there is
    /// nothing left.
    ///
    /// C counterpart: `filemap_release_folio()`.
    #[inline(always)]
    fn release(&mut self) -> bool {
        // SAFETY: The folio is live and locked by the type invariants. What is freed is borrowed
        // from its lock, which is borrowed exclusively.
        unsafe { bindings::filemap_release_folio(self.as_raw(), 0) }
    }

    /// Whether the folio can go, as far as is known without the lock of its page cache. Whoever has
    /// it mapped uses it, and has claimed it unless `MADV_COLLAPSE` has mapped it.
    #[inline(always)]
    fn prepare(&mut self, mapping: &AddressSpace, spares_end: bool) -> bool {
        if !self.seen().may_go() {
            return false;
        }
        if self.is_mapped() {
            // SAFETY: Both live, and no lock of the page cache or section of its wb is held here.
            unsafe { bindings::rust_dontcache_claim(self.as_raw(), mapping.as_raw()) };
            return false;
        }
        if spares_end
            && self.size() <= LARGE
            && self.is_appended_to()
            && Leftovers::per_cpu()
                .this(&CpuGuard::new())
                .add_at_leisure(self)
        {
            return false;
        }
        self.release()
    }
}

/// Has those of `folios` leave their page cache that are still to, and that can. Returns how many,
/// and moves the others behind them. The caller gets the page cache's references.
///
/// Context: a task with interrupts on.
///
/// # Safety
///
/// They must be in the same page cache, each behind the one before.
#[inline(always)]
unsafe fn remove(folios: &mut [Held], spares_end: bool) -> usize {
    let (Some(first), Some(last)) = (folios.first(), folios.last()) else {
        return 0;
    };
    // SAFETY: It is the page cache that they are in, which lives for as long as they are in there
    // and locked; then the lock of the inode keeps it, until the last use below.
    let mapping = unsafe { AddressSpace::from_raw(first.raw_mapping()) };
    // Mostly the file ends in none of them.
    let spares_end = spares_end && is_end(first.pos()..last.bytes().end, mapping.host().size());
    // SAFETY: The page cache is live. What it has as operations does not change while folios are in
    // it.
    let free_folio = unsafe { (*(*mapping.as_raw()).a_ops).free_folio };

    let nr = to_front(folios, |folio| folio.prepare(mapping, spares_end));
    let Some(folios) = folios.get_mut(..nr).filter(|folios| !folios.is_empty()) else {
        return 0;
    };
    let removal = Removal::begin(mapping);
    let nr = to_front(folios, |folio| folio.seen().may_go());
    let Some(folios) = folios.get(..nr).filter(|folios| !folios.is_empty()) else {
        return 0;
    };
    // SAFETY: By the invariants of `Held` they are locked and referenced, and they are in this page
    // cache, in the order in which they came. They are clean under the lock, unmapped since they
    // are locked, and released.
    unsafe { removal.delete(folios) };
    drop(removal);

    for folio in folios {
        if let Some(free_folio) = free_folio {
            // SAFETY: The folio has left its page cache, whose operation this is.
            unsafe { free_folio(folio.as_raw()) };
        }
        folio.clear_dropbehind();
    }
    nr
}

/// Drops `folio` by itself, if it is dropbehind, clean, in a page cache and nobody maps it. With
/// `spares_end` the one that its file ends in is kept for a while, if somebody may append to that.
///
/// Context: a task with interrupts on.
///
/// # Safety
///
/// It must be locked by the current task, in a page cache, and have a reference that stays; nothing
/// may be borrowed from its lock.
#[inline(always)]
pub unsafe fn drop_locked(folio: NonNull<bindings::folio>, spares_end: bool) {
    // INVARIANT: The caller promises it.
    let mut held = [Held(folio)];
    // SAFETY: It is the only one.
    if unsafe { remove(&mut held, spares_end) } == 1 {
        // SAFETY: The caller's reference keeps the folio.
        let pages = unsafe { bindings::folio_nr_pages(folio.as_ptr()) };
        // SAFETY: They were the page cache's.
        unsafe { bindings::folio_put_refs(folio.as_ptr(), pages as i32) };
    }
}

/// The locks under which folios leave a page cache.
///
/// # Invariants
///
/// The lock of the inode of `mapping` and the one of `mapping->i_pages` are held, and are this
/// guard's to release.
struct Removal<'a> {
    mapping: &'a AddressSpace,
    _not_send: NotThreadSafe,
}

impl<'a> Removal<'a> {
    /// Context: a task with interrupts on.
    #[inline(always)]
    fn begin(mapping: &'a AddressSpace) -> Self {
        // SAFETY: The page cache and its inode are live by the type's invariants.
        unsafe { bindings::rust_filemap_lock(mapping.as_raw()) };
        // INVARIANT: Both were taken right above.
        Self {
            mapping,
            _not_send: NotThreadSafe,
        }
    }

    /// Removes all of `folios` from the page cache. The caller gets its references.
    ///
    /// # Safety
    ///
    /// There must be at least one. They must be in this page cache, in ascending order, clean,
    /// without anything that their file system has attached, and mapped by nobody.
    #[inline(always)]
    unsafe fn delete(&self, folios: &[Held]) {
        let (first, nr) = (folios.as_ptr().cast(), folios.len() as u32);
        // SAFETY: By the type invariants the locks are held; `Held` is transparent over the pointer
        // of a folio that is locked. The rest the caller promises.
        unsafe { bindings::rust_filemap_delete(self.mapping.as_raw(), first, nr) };
    }
}

impl Drop for Removal<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: By the type invariants the locks are held, and ours to release. The inode lives
        // as long as its lock is held.
        unsafe { bindings::rust_filemap_unlock(self.mapping.as_raw()) };
    }
}

/// What the current task gathers. Dropping it drops the folios.
///
/// # Invariants
///
/// - The current task is the owner of `batch`, and uses it by this value alone.
/// - The first `nr` of its folios are [`Held`], each with a lock that is this value's. They are in
///   one page cache, and ascend: as `core` has them.
pub struct OwnDropBatch {
    batch: &'static DropBatch,
    _not_send: NotThreadSafe,
}

impl OwnDropBatch {
    /// Takes up what C keeps.
    ///
    /// # Safety
    ///
    /// `batch` must be what [`as_raw`](Self::as_raw) has said of a value that the current task has
    /// forgotten, and nobody else has taken up. This must be no interrupt.
    #[inline(always)]
    pub unsafe fn taken_up(batch: *mut bindings::rust_drop_batch) -> Self {
        // INVARIANT: The caller promises it.
        Self {
            // SAFETY: It was such a reference.
            batch: unsafe { &*batch.cast() },
            _not_send: NotThreadSafe,
        }
    }

    /// The pointer that C knows the batch by.
    #[inline(always)]
    pub fn as_raw(&self) -> *mut bindings::rust_drop_batch {
        self.batch.0.get()
    }

    #[inline(always)]
    fn row(&mut self) -> &mut Row {
        // SAFETY: By the type invariants it is such a row, and the current task's by this value
        // alone.
        unsafe { &mut *(&raw mut (*self.as_raw()).core).cast() }
    }

    #[inline(always)]
    fn folios(&mut self) -> &mut bindings::folio_batch {
        // SAFETY: By the type invariants it is the current task's by this value alone.
        unsafe { &mut (*self.as_raw()).folios }
    }

    /// Gathers a folio, and drops the others before if it does not go with them. Returns false if
    /// the folio is locked, or in no page cache any more.
    ///
    /// Context: a task with interrupts on.
    #[inline]
    pub fn add(&mut self, folio: &Folio) -> bool {
        let Some(guard) = folio.try_lock() else {
            return false;
        };
        let mapping = guard.raw_mapping();
        if mapping.is_null() {
            return false;
        }
        let (bytes, nr) = (guard.bytes(), self.folios().nr);
        if !self.row().add(nr.into(), mapping.addr(), bytes) {
            self.drop_all();
        }
        // INVARIANT: The lock is the batch's from here. It keeps the folio in the page cache.
        forget(guard);
        let folios = self.folios();
        // There is a place: a row has no more than `MOST`.
        if let Some(place) = folios.folios.get_mut(usize::from(folios.nr)) {
            *place = folio.as_raw();
            folios.nr = folios.nr.saturating_add(1);
        }
        true
    }

    /// Drops the folios that are still to be dropped, and lets the others go. None is left here.
    #[inline(never)]
    fn drop_all(&mut self) {
        let folios = self.folios();
        // SAFETY: By the type invariants these are as many folios that are held, and `Held` is
        // transparent over the pointer.
        let held: &mut [Held] =
            unsafe { slice::from_raw_parts_mut((&raw mut folios.folios).cast(), folios.nr.into()) };
        // SAFETY: By the type invariants they are, for they are locked.
        let dropped = unsafe { remove(held, true) };
        // SAFETY: The lock is the batch's to release, and each is given here once.
        let unlock = |folio: &Held| unsafe { bindings::folio_unlock(folio.as_raw()) };
        let (gone, staying) = held.split_at_checked(dropped).unwrap_or((held, &[]));
        let mut refs = [const { MaybeUninit::<u32>::uninit() }; MOST];
        for (folio, refs) in gone.iter().zip(&mut refs) {
            refs.write(folio.nr_pages() as u32);
            unlock(folio);
        }
        for folio in staying {
            // Once it is unlocked the page cache need not keep it.
            let folio_ref = ARef::<Folio>::from(&***folio);
            unlock(folio);
            if folio_ref.seen().may_go() {
                Leftovers::per_cpu().this(&CpuGuard::new()).add(&folio_ref);
            }
        }
        let folios = self.folios();
        folios.nr = dropped as u8;
        // SAFETY: They are the first, and the page cache's references on each are ours. The batch
        // is empty after.
        unsafe { bindings::folios_put_refs(folios, refs.as_mut_ptr().cast()) };
    }
}

impl Drop for OwnDropBatch {
    #[inline(always)]
    fn drop(&mut self) {
        if self.folios().nr != 0 {
            self.drop_all();
        }
        // INVARIANT: It is empty, and the owner's no more.
        self.batch.owner().store(null_mut(), Release);
    }
}

/// Drops `folio` if it is still to be dropped: with others where the current task gathers some, or
/// else by itself. If somebody is in the way it is tried again.
///
/// Context: a task with interrupts on.
///
/// C counterpart: `folio_end_dropbehind()`.
pub fn drop_now(folio: &Folio, together: &mut Option<OwnDropBatch>) {
    if !folio.seen().may_go() {
        return;
    }
    let gathers = folio.size() <= LARGE;
    if gathers && together.as_mut().is_some_and(|batch| batch.add(folio)) {
        return;
    }
    if let Some(guard) = folio.try_lock() {
        guard.end(true);
    }
    if folio.seen().may_go() {
        Leftovers::per_cpu().this(&CpuGuard::new()).add(folio);
    }
}
