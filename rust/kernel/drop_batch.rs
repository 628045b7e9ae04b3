// SPDX-License-Identifier: GPL-2.0

//! Folios that a task gathers to drop them in one batch.
//!
//! [`crate::writeback::together`] decides which folios, and when they are dropped.
//!
//! The task has several folios locked at a time, not in the order in which other tasks lock folios.
//! That cannot deadlock, because the task only tries to lock. From its first folio to the end of
//! its bio, or of a row of folios that an interrupt has left, it waits for nothing. The functions
//! of a file system that end the folios of a bio take spinlocks and free memory; its other work at
//! the end of a bio comes before that or in other tasks. Freeing a folio's buffers
//! (`Held::release`) without a gfp flag waits neither for I/O nor for another folio. So a waiter
//! for one of the locks waits at most for the folios of one bio or row. This holds for a task that
//! submits, too: it fails to lock a folio that it has locked itself, and the folio is retried
//! later.
//!
//! A folio that is locked and in a page cache keeps the page cache and the inode, because eviction
//! waits for the lock. So the inode needs no other reference. After the last folio has left, the
//! inode's lock keeps the inode, as in C.
//!
//! A CPU's batch is found through the CPU, and stays its owner's if the owner moves. On another CPU
//! the owner does not find it, and drops its folios one by one.
//!
//! C header: [`include/linux/rust_drop.h`](srctree/include/linux/rust_drop.h)

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
    /// The flags that decide whether the folio is to be dropped, at one moment. Unordered.
    #[inline(always)]
    pub fn seen(&self) -> Seen {
        let flags = self.flags();
        Seen {
            dropbehind: flags.dropbehind(),
            dirty: flags.dirty(),
            writeback: flags.writeback(),
        }
    }

    /// Clears dropbehind of a folio that has left the page cache.
    ///
    /// C counterpart: `folio_clear_dropbehind()`.
    #[inline(always)]
    fn clear_dropbehind(&self) {
        // SAFETY: The folio is live by the type invariants; the flag is cleared atomically.
        unsafe { bindings::folio_clear_dropbehind(self.as_raw()) };
    }
}

impl LockedFolio {
    /// The position of the folio in its file.
    #[inline(always)]
    fn bytes(&self) -> Range<i64> {
        let start = self.pos();
        start..start.wrapping_add(self.size() as i64)
    }

    /// Whether the folio's file ends in it, and is open for writing: a writer that appends to the
    /// file writes to the folio again.
    #[inline(always)]
    pub fn is_appended_to(&self) -> bool {
        let mapping = self.raw_mapping();
        if mapping.is_null() {
            return false;
        }
        // SAFETY: By the type invariants of `Folio` this is a page cache that is not freed while
        // the folio is locked.
        let inode = unsafe { AddressSpace::from_raw(mapping) }.host();
        is_end(self.bytes(), inode.size()) && inode.is_open_for_write()
    }
}

impl FolioGuard<'_> {
    /// Drops the folio from its page cache if it is dropbehind, clean and not mapped, and unlocks
    /// it. Keeps dropbehind if another user of the folio prevents the drop.
    ///
    /// Takes the guard by value: the folio's buffers, which are borrowed from it, are freed.
    ///
    /// Context: may sleep.
    ///
    /// C counterpart: `filemap_end_dropbehind()`.
    #[inline]
    pub fn end_dropbehind(self) {
        self.end(false);
    }

    /// `spares_end` keeps the folio at the end of its file for a while if a writer may append.
    #[inline(always)]
    fn end(self, spares_end: bool) {
        if self.raw_mapping().is_null() {
            // Another context has removed the folio from its page cache.
            if self.seen().may_go() {
                self.clear_dropbehind();
            }
            return;
        }
        // SAFETY: By the type invariants this guard has the folio locked, and nothing is borrowed
        // from the guard any more. The lock keeps the folio in the page cache, which has a
        // reference on it until it leaves; the guard was borrowed from the owner of another
        // reference.
        unsafe { drop_locked(NonNull::from(&**self).cast(), spares_end) };
    }
}

/// A CPU's place to gather folios (`struct rust_drop_batch`).
///
/// # Invariants
///
/// - Instances are initialised and never freed, and only accessed in this file.
/// - `owner` is null, or a task that has set it to itself. Only the owner uses the rest: `core` is
///   a [`Row`], and `folios` has places for [`MOST`] folios. Without an owner there are no folios.
#[repr(transparent)]
pub struct DropBatch(Opaque<bindings::rust_drop_batch>);

// SAFETY: Contexts other than the owner only access `owner`, atomically.
unsafe impl Sync for DropBatch {}

const _: () = {
    type Storage = [usize; bindings::RUST_DROP_BATCH_CORE as usize];
    assert!(size_of::<Row>() == size_of::<Storage>());
    assert!(align_of::<Row>() == align_of::<Storage>());
    assert!(MOST == bindings::FOLIO_BATCH_SIZE as usize);
};

impl DropBatch {
    /// The batches of all CPUs.
    #[inline(always)]
    pub fn per_cpu() -> PerCpu<Self> {
        // SAFETY: C defines one for each possible CPU, zeroed; all zeroes is an empty batch without
        // an owner. `Self` is transparent over it.
        unsafe { PerCpu::from_raw((&raw mut bindings::rust_drop_batches).cast()) }
    }

    #[inline(always)]
    fn owner(&self) -> &Atomic<*mut bindings::task_struct> {
        // SAFETY: The field lives by the type invariants. Only this function accesses it, and C
        // reads it in one load.
        unsafe { Atomic::from_ptr(&raw mut (*self.0.get()).owner) }
    }

    /// Has the current task gather here, unless another task does.
    ///
    /// Context: a task, which waits for no folio's lock until it drops the returned value.
    #[inline(always)]
    pub fn begin(&'static self) -> Option<OwnDropBatch> {
        // Pairs with the release by the previous owner.
        self.owner()
            .cmpxchg(null_mut(), Task::current_raw(), Acquire)
            .ok()?;
        // INVARIANT: The current task is the owner from here.
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
/// While the value is used, the current task has the folio locked and nothing is borrowed from the
/// lock. The folio is in a page cache, or has left it by [`remove`]. Either way it has the page
/// cache's references: the page cache cannot give them up while the folio is locked.
#[repr(transparent)]
struct Held(NonNull<bindings::folio>);

impl Deref for Held {
    type Target = LockedFolio;

    #[inline(always)]
    fn deref(&self) -> &LockedFolio {
        // SAFETY: By the type invariants the folio is locked while `self` is borrowed. Freeing its
        // buffers borrows `self` exclusively.
        unsafe { LockedFolio::assume_locked(self.0.as_ptr()) }
    }
}

impl Held {
    /// Frees the file system's private data of the folio. Returns whether none is left.
    ///
    /// C counterpart: `filemap_release_folio()`.
    #[inline(always)]
    fn release(&mut self) -> bool {
        // SAFETY: The folio is live and locked by the type invariants. The freed data is borrowed
        // from its lock, which is borrowed exclusively.
        unsafe { bindings::filemap_release_folio(self.as_raw(), 0) }
    }

    /// Whether the folio can go, as far as is known without the lock of its page cache. A mapped
    /// folio has another user, which has cleared dropbehind unless `MADV_COLLAPSE` has mapped it.
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

/// Removes those of `folios` from their page cache that are still to be dropped and can be. Returns
/// their number, and moves the others behind them. The caller gets the page cache's references.
///
/// Context: a task with interrupts on.
///
/// # Safety
///
/// The folios must be in one page cache, in ascending order.
#[inline(always)]
unsafe fn remove(folios: &mut [Held], spares_end: bool) -> usize {
    let (Some(first), Some(last)) = (folios.first(), folios.last()) else {
        return 0;
    };
    // SAFETY: The mapping is the page cache of the folios. It lives while they are in it and
    // locked; after that the lock of the inode keeps it, until its last use below.
    let mapping = unsafe { AddressSpace::from_raw(first.raw_mapping()) };
    // In most cases the file ends in none of them.
    let spares_end = spares_end && is_end(first.pos()..last.bytes().end, mapping.host().size());
    // SAFETY: The page cache is live. Its operations do not change while it has folios.
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
    // SAFETY: By the invariants of `Held` the folios are locked and referenced, and they are in
    // this page cache, in the order in which they came. They are clean under the lock, unmapped
    // because they are locked, and released.
    unsafe { removal.delete(folios) };
    drop(removal);

    for folio in folios {
        if let Some(free_folio) = free_folio {
            // SAFETY: The folio has left its page cache, which defines this operation.
            unsafe { free_folio(folio.as_raw()) };
        }
        folio.clear_dropbehind();
    }
    nr
}

/// Drops `folio` by itself if it is dropbehind, clean, in a page cache and not mapped. `spares_end`
/// keeps the folio at the end of its file for a while if a writer may append.
///
/// Context: a task with interrupts on.
///
/// # Safety
///
/// The current task must have the folio locked, in a page cache, and with a reference that stays.
/// Nothing may be borrowed from its lock.
#[inline(always)]
pub unsafe fn drop_locked(folio: NonNull<bindings::folio>, spares_end: bool) {
    // INVARIANT: The caller promises it.
    let mut held = [Held(folio)];
    // SAFETY: There is only one.
    if unsafe { remove(&mut held, spares_end) } == 1 {
        // SAFETY: The caller's reference keeps the folio.
        let pages = unsafe { bindings::folio_nr_pages(folio.as_ptr()) };
        // SAFETY: The references were the page cache's.
        unsafe { bindings::folio_put_refs(folio.as_ptr(), pages as i32) };
    }
}

/// The locks under which folios leave a page cache.
///
/// # Invariants
///
/// The locks of the inode of `mapping` and of `mapping->i_pages` are held, and this guard has to
/// release both.
struct Removal<'a> {
    mapping: &'a AddressSpace,
    _not_send: NotThreadSafe,
}

impl<'a> Removal<'a> {
    /// Context: a task with interrupts on.
    #[inline(always)]
    fn begin(mapping: &'a AddressSpace) -> Self {
        // SAFETY: The page cache and its inode are live by the type invariants.
        unsafe { bindings::rust_filemap_lock(mapping.as_raw()) };
        // INVARIANT: Both locks were taken above.
        Self {
            mapping,
            _not_send: NotThreadSafe,
        }
    }

    /// Removes all of `folios` from the page cache. The caller gets its references.
    ///
    /// # Safety
    ///
    /// There must be at least one folio. The folios must be in this page cache, in ascending order,
    /// clean, without private data of their file system, and not mapped.
    #[inline(always)]
    unsafe fn delete(&self, folios: &[Held]) {
        let (first, nr) = (folios.as_ptr().cast(), folios.len() as u32);
        // SAFETY: By the type invariants the locks are held. `Held` is transparent over the pointer
        // of a locked folio. The caller promises the rest.
        unsafe { bindings::rust_filemap_delete(self.mapping.as_raw(), first, nr) };
    }
}

impl Drop for Removal<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: By the type invariants the locks are held, and this guard may release them. The
        // inode lives as long as its lock is held.
        unsafe { bindings::rust_filemap_unlock(self.mapping.as_raw()) };
    }
}

/// The folios that the current task gathers. Dropping the value drops the folios.
///
/// # Invariants
///
/// - The current task owns `batch`, and only uses it through this value.
/// - The first `nr` of its folios are [`Held`], and this value has their locks. They are in one
///   page cache and in ascending order, as `core` describes them.
pub struct OwnDropBatch {
    batch: &'static DropBatch,
    _not_send: NotThreadSafe,
}

impl OwnDropBatch {
    /// Makes a value of the pointer that C keeps.
    ///
    /// # Safety
    ///
    /// `batch` must be the [`as_raw`](Self::as_raw) of a value that the current task has forgotten,
    /// and must be taken up only once. The context must not be an interrupt.
    #[inline(always)]
    pub unsafe fn taken_up(batch: *mut bindings::rust_drop_batch) -> Self {
        // INVARIANT: The caller promises it.
        Self {
            // SAFETY: The pointer came from such a reference.
            batch: unsafe { &*batch.cast() },
            _not_send: NotThreadSafe,
        }
    }

    /// The pointer that C uses for the batch.
    #[inline(always)]
    pub fn as_raw(&self) -> *mut bindings::rust_drop_batch {
        self.batch.0.get()
    }

    #[inline(always)]
    fn row(&mut self) -> &mut Row {
        // SAFETY: By the type invariants the task uses this row only through this value.
        unsafe { &mut *(&raw mut (*self.as_raw()).core).cast() }
    }

    #[inline(always)]
    fn folios(&mut self) -> &mut bindings::folio_batch {
        // SAFETY: By the type invariants the task uses it only through this value.
        unsafe { &mut (*self.as_raw()).folios }
    }

    /// Gathers a folio. If it cannot join the gathered folios, these are dropped first. Returns
    /// false if the folio is locked, or in no page cache any more.
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
        // INVARIANT: The batch has the lock from here. The lock keeps the folio in the page cache.
        forget(guard);
        let folios = self.folios();
        // There is a place: a row has at most `MOST` folios.
        if let Some(place) = folios.folios.get_mut(usize::from(folios.nr)) {
            *place = folio.as_raw();
            folios.nr = folios.nr.saturating_add(1);
        }
        true
    }

    /// Drops the folios that are still to be dropped, unlocks the others, and empties the batch.
    #[inline(never)]
    fn drop_all(&mut self) {
        let folios = self.folios();
        // SAFETY: By the type invariants so many folios are held; `Held` is transparent over one.
        let held: &mut [Held] =
            unsafe { slice::from_raw_parts_mut((&raw mut folios.folios).cast(), folios.nr.into()) };
        // SAFETY: By the type invariants the folios ascend in one page cache: they are locked.
        let dropped = unsafe { remove(held, true) };
        // SAFETY: The batch may release the locks. Each folio is unlocked once.
        let unlock = |folio: &Held| unsafe { bindings::folio_unlock(folio.as_raw()) };
        let (gone, staying) = held.split_at_checked(dropped).unwrap_or((held, &[]));
        let mut refs = [const { MaybeUninit::<u32>::uninit() }; MOST];
        for (folio, refs) in gone.iter().zip(&mut refs) {
            refs.write(folio.nr_pages() as u32);
            unlock(folio);
        }
        for folio in staying {
            // Once the folio is unlocked, the page cache no longer protects it.
            let folio_ref = ARef::<Folio>::from(&***folio);
            unlock(folio);
            if folio_ref.seen().may_go() {
                Leftovers::per_cpu().this(&CpuGuard::new()).add(&folio_ref);
            }
        }
        let folios = self.folios();
        folios.nr = dropped as u8;
        // SAFETY: The dropped folios are the first. The batch has the page cache's references on
        // each, and is empty afterwards.
        unsafe { bindings::folios_put_refs(folios, refs.as_mut_ptr().cast()) };
    }
}

impl Drop for OwnDropBatch {
    #[inline(always)]
    fn drop(&mut self) {
        if self.folios().nr != 0 {
            self.drop_all();
        }
        // INVARIANT: The batch is empty, and no longer the owner's.
        self.batch.owner().store(null_mut(), Release);
    }
}

/// Drops `folio` if it is still to be dropped: in a batch if the current task gathers one, or else
/// by itself. If another user is in the way, the drop is retried later.
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
