// SPDX-License-Identifier: GPL-2.0

//! Dropbehind folios leave the page cache.
//!
//! [`crate::writeback::dropbehind`] explains how. A folio that waits in the ring of a CPU has a
//! reference, which does not prevent drop, truncation, or invalidation for direct I/O. Reclaim,
//! migration, `POSIX_FADV_DONTNEED` and `drop_caches` skip it. So folios wait only briefly, and
//! larger ones only if they are in use, or until the worker runs.
//!
//! The worker has several folios locked at a time, not in the order in which other tasks lock
//! folios. That cannot deadlock, because it only tries to lock, and waits for nothing while it has
//! a lock. Freeing a folio's buffers (`Held::prepare`) without a gfp flag waits neither for I/O nor
//! for another folio.
//!
//! A folio that is locked and in a page cache keeps the page cache and the inode, because eviction
//! waits for the lock. So the inode needs no other reference. After the last folio has left, the
//! section of the inode's lock keeps the inode, which is freed by RCU, as in C.
//!
//! C header: [`include/linux/rust_writeback.h`](srctree/include/linux/rust_writeback.h)

use crate::{
    bindings,
    folio::{
        Folio,
        FolioGuard,
        LockedFolio,
        DIRTY,
        DROPBEHIND,
        REFERENCED,
        WRITEBACK, //
    },
    fs::AddressSpace,
    interrupt::{
        local_interrupt_disable,
        LocalInterruptDisabled, //
    },
    sched,
    sync::{
        aref::ARef,
        atomic::{
            Atomic,
            Full,
            Relaxed, //
        }, //
    },
    task::might_sleep,
    types::Opaque,
    writeback::dropbehind::{
        few,
        is_end,
        is_old,
        stamp,
        to_front,
        Count,
        Ring,
        Seen,
        Slot,
        Todo,
        MOST,
        NEW,
        WAIT_MS, //
    }, //
};
use core::{
    mem::{
        forget,
        MaybeUninit, //
    },
    ops::Deref,
    ptr::{
        null_mut,
        NonNull, //
    },
    slice, //
};

impl Folio {
    /// The flags that decide whether the folio is to be dropped, at one moment. Unordered.
    #[inline]
    pub fn seen(&self) -> Seen {
        let flags = self.flags();
        Seen {
            dropbehind: flags & DROPBEHIND != 0,
            dirty: flags & DIRTY != 0,
            writeback: flags & WRITEBACK != 0,
        }
    }

    /// Clears dropbehind of a folio that has left the page cache.
    ///
    /// C counterpart: `folio_clear_dropbehind()`.
    #[inline]
    fn clear_dropbehind(&self) {
        // SAFETY: The folio is live by the type invariants; the flag is cleared atomically.
        unsafe { bindings::folio_clear_dropbehind(self.as_raw()) };
    }
}

impl FolioGuard<'_> {
    /// Drops the folio from its page cache if it is dropbehind, clean and not mapped, and unlocks
    /// it. Keeps dropbehind if another user of the folio prevents the drop.
    ///
    /// Takes the guard by value: the folio's buffers, which are borrowed from it, are freed.
    ///
    /// C counterpart: `filemap_end_dropbehind()`.
    ///
    /// # Safety
    ///
    /// The context must be a task with interrupts on.
    #[inline]
    pub unsafe fn end_dropbehind(self) {
        // SAFETY: By the type invariants this guard has the folio locked, and nothing is borrowed
        // from the guard any more. The guard was borrowed from the owner of a reference. The caller
        // promises the context.
        unsafe { drop_locked(NonNull::from(&**self).cast()) };
    }
}

/// A folio that is to be dropped.
///
/// # Invariants
///
/// While the value is used, the current task has the folio locked and nothing is borrowed from the
/// lock. A folio that is in a page cache, or has left it by [`remove`], has the page cache's
/// references: the page cache cannot give them up while the folio is locked.
#[repr(transparent)]
struct Held(NonNull<bindings::folio>);

impl Deref for Held {
    type Target = LockedFolio;

    #[inline]
    fn deref(&self) -> &LockedFolio {
        // SAFETY: By the type invariants the folio is locked while `self` is borrowed. Freeing its
        // buffers borrows `self` exclusively.
        unsafe { LockedFolio::assume_locked(self.0.as_ptr()) }
    }
}

impl Held {
    /// Frees the file system's private data of the folio. Returns whether the folio can be dropped,
    /// as far as this is known without the lock of its page cache. A mapped folio has another user.
    /// That user has cleared dropbehind, unless `MADV_COLLAPSE` has mapped the folio.
    #[inline]
    fn prepare(&mut self, mapping: &AddressSpace) -> bool {
        if !self.seen().may_go() {
            return false;
        }
        if self.is_mapped() {
            self.claim(&mapping.lock_pages());
            return false;
        }
        // SAFETY: The folio is live and locked by the type invariants. The freed data is borrowed
        // from its lock, which is borrowed exclusively.
        unsafe { bindings::filemap_release_folio(self.as_raw(), 0) }
    }
}

/// Removes from their page cache the `folios` that are still to be dropped and can be dropped.
/// Moves the other folios behind them, and returns the number of removed folios. The caller gets
/// the page cache's references on these.
///
/// # Safety
///
/// The folios must be in one page cache. The context must be a task with interrupts on, because the
/// lock of the inode is taken and interrupts are enabled.
// Not inlined, it costs a large folio 60 instructions more, and one of 4 KiB 7 fewer.
#[inline(always)]
unsafe fn remove(folios: &mut [Held]) -> usize {
    let mapping = folios.first().and_then(|first| first.mapping());
    let Some(mapping) = mapping.map(AddressSpace::as_raw) else {
        return 0;
    };
    // SAFETY: The mapping is the page cache of the folios. It lives while they are in it and
    // locked; after that the section of the inode's lock keeps it, until its last use below.
    let mapping = unsafe { AddressSpace::from_raw(mapping) };
    // SAFETY: The page cache is live, and its operations are constant data. (The file systems that
    // change the operations of a page cache in use have no `free_folio`.)
    let free_folio = unsafe { (*(*mapping.as_raw()).a_ops).free_folio };

    let nr = to_front(folios, |folio| folio.prepare(mapping));
    let Some(folios) = folios.get_mut(..nr).filter(|folios| !folios.is_empty()) else {
        return 0;
    };
    // SAFETY: The page cache and its inode are live. Nothing between the calls returns or panics.
    unsafe { bindings::dropbehind_lock(mapping.as_raw()) };
    let nr = to_front(folios, |folio| folio.seen().may_go());
    // SAFETY: The locks are held. `Held` is transparent over the pointer of a folio. By its
    // invariants the first `nr` folios are locked and referenced, and they are in this page cache.
    // They are clean under the lock. `prepare()` found them unmapped and released their private
    // data, and the locks of the folios have kept both.
    unsafe { bindings::dropbehind_remove(mapping.as_raw(), folios.as_ptr().cast(), nr as u32) };
    // SAFETY: The locks are held. The inode is freed by RCU, so it lives until its lock is free.
    unsafe { bindings::dropbehind_unlock(mapping.as_raw()) };

    for folio in folios.iter().take(nr) {
        if let Some(free_folio) = free_folio {
            // SAFETY: The folio has left its page cache, which defines this operation.
            unsafe { free_folio(folio.as_raw()) };
        }
        folio.clear_dropbehind();
    }
    nr
}

/// Drops `folio` if it is dropbehind, clean and not mapped.
///
/// # Safety
///
/// The current task must have the folio locked, and the folio a reference that stays. Nothing may
/// be borrowed from its lock. The context must be a task with interrupts on, as for [`remove`].
pub unsafe fn drop_locked(folio: NonNull<bindings::folio>) {
    // INVARIANT: The caller promises the lock.
    let mut held = [Held(folio)];
    let [folio] = &held;
    if folio.mapping().is_none() {
        return folio.clear_dropbehind();
    }
    // SAFETY: There is only one folio, and it is in a page cache.
    if unsafe { remove(&mut held) } == 1 {
        let [folio] = &held;
        // SAFETY: The page cache has given up these references. The caller's reference keeps the
        // folio.
        unsafe { bindings::folio_put_refs(folio.as_raw(), folio.nr_pages() as i32) };
    }
}

/// Drops `folio`, which is dropbehind, now, or has the worker drop it soon. A folio that is no
/// longer to be dropped at that time is kept.
///
/// Context: any but NMI.
///
/// C counterpart: `folio_end_dropbehind()`.
#[inline]
pub fn end_dropbehind(folio: &Folio) {
    if !folio.seen().may_go() {
        return;
    }
    if folio.nr_pages() == 1 && DropRing::put(folio, |todo| todo) {
        return;
    }
    try_drop(folio);
    if folio.seen().may_go() {
        if sched::is_preemptible() {
            if let Some(first) = DropRing::replace(folio) {
                try_drop(&first);
            }
        } else if folio.nr_pages() > 1 {
            // It would keep much memory while it waits for others. If there is no room, it stays
            // until it is reclaimed, as in C.
            DropRing::put(folio, |_| Todo::Now);
        }
    }
}

/// Drops `folio` if its lock is free, it can be dropped, and this is a task with interrupts on.
#[inline]
fn try_drop(folio: &Folio) {
    if sched::is_preemptible() {
        if let Some(guard) = folio.try_lock() {
            // SAFETY: Interrupts are on.
            unsafe { guard.end_dropbehind() };
        }
    }
}

/// A folio in a ring.
struct Waiting {
    folio: ARef<Folio>,
    /// A [`stamp`], or [`NEW`].
    since: usize,
}

/// Values of a [`stamp`].
const STAMPS: usize = 8;
const _: () = assert!(align_of::<bindings::folio>() >= STAMPS);

/// The time as a [`stamp`].
#[inline]
fn now() -> usize {
    stamp(sched::jiffies(), bindings::CONFIG_HZ as usize)
}

impl Waiting {
    #[inline]
    fn new(folio: &Folio) -> Self {
        Self {
            folio: folio.into(),
            since: NEW,
        }
    }

    /// A word that owns the reference: a pointer with `since` in its lowest bits.
    #[inline]
    fn into_word(self) -> *mut bindings::folio {
        let folio = ARef::into_raw(self.folio).as_ptr().cast();
        <*mut bindings::folio>::map_addr(folio, |address| address | self.since)
    }

    /// # Safety
    ///
    /// `word` must be null or come from [`into_word`](Self::into_word), and be turned back only
    /// once.
    #[inline]
    unsafe fn from_word(word: *mut bindings::folio) -> Option<Self> {
        let folio = NonNull::new(folio_of(word).cast())?;
        Some(Self {
            // SAFETY: Without `since` this is the pointer of a reference, which the word owned.
            folio: unsafe { ARef::from_raw(folio) },
            since: word.addr() % STAMPS,
        })
    }
}

/// The folio of a word that [`Waiting::into_word`] has made, or null.
#[inline]
fn folio_of(word: *mut bindings::folio) -> *mut bindings::folio {
    word.map_addr(|address| address & !(STAMPS - 1))
}

/// A slot: null, or a word that owns a reference.
#[repr(transparent)]
struct FolioSlot(Atomic<*mut bindings::folio>);

impl Slot for FolioSlot {
    type Item = Waiting;

    #[inline]
    fn exchange(&self, waiting: Option<Waiting>) -> Option<Waiting> {
        let word = self
            .0
            .xchg(waiting.map_or(null_mut(), Waiting::into_word), Full);
        // SAFETY: The slot owned this word, and no longer does.
        unsafe { Waiting::from_word(word) }
    }

    #[inline]
    fn has(&self, waiting: &Waiting) -> bool {
        folio_of(self.0.load(Relaxed)) == waiting.folio.as_raw()
    }
}

impl Count for Atomic<usize> {
    #[inline]
    fn get(&self) -> usize {
        self.load(Relaxed)
    }

    #[inline]
    fn set(&self, count: usize) {
        self.store(count, Relaxed);
    }
}

const _: () = assert!(MOST == bindings::FOLIO_BATCH_SIZE as usize);

const SLOTS: usize = bindings::DROPBEHIND_SLOTS as usize;
const _: () = assert!(SLOTS.is_power_of_two());

/// The ring of a CPU (`struct dropbehind_ring`).
///
/// # Invariants
///
/// - Instances are initialised and never freed. All fields but the work are only accessed in this
///   file, atomically.
/// - Only [`change`](Self::change) puts folios in, with interrupts off on the ring's CPU, and
///   takes the first one out to put another in its place. The work takes out the others.
#[repr(transparent)]
pub struct DropRing(Opaque<bindings::dropbehind_ring>);

// SAFETY: All fields but the work are only accessed atomically. The work is only given to the
// workqueue, which synchronises its users.
unsafe impl Sync for DropRing {}

impl DropRing {
    /// An interrupt ends a bio of at most so many pages.
    pub const FEW: u32 = few(SLOTS);

    /// Makes a reference of a C pointer.
    ///
    /// # Safety
    ///
    /// `ptr` must point at the ring of a CPU.
    pub unsafe fn from_raw<'a>(ptr: *mut bindings::dropbehind_ring) -> &'a Self {
        // SAFETY: The caller promises a ring, which is never freed. `Self` is transparent over it.
        unsafe { &*ptr.cast() }
    }

    /// The ring of this CPU. The context stays on the CPU, because interrupts are off.
    #[inline]
    pub fn of_this_cpu(_off: &LocalInterruptDisabled) -> &Self {
        // SAFETY: C defines one for each possible CPU, zeroed except for the work, which is
        // initialised before any writeback ends.
        unsafe {
            let rings = &raw mut bindings::dropbehind_rings;
            Self::from_raw(bindings::raw_cpu_ptr(rings.cast()).cast())
        }
    }

    #[inline]
    fn core(&self) -> Ring<'_, FolioSlot, Atomic<usize>> {
        let raw = self.0.get();
        // SAFETY: The fields live by the type invariants. Only this function accesses them,
        // atomically. `FolioSlot` is transparent over a pointer.
        unsafe {
            let slots = &*(&raw const (*raw).slots).cast::<[FolioSlot; SLOTS]>();
            let nr_put = Atomic::from_ptr(&raw mut (*raw).nr_put);
            let nr_taken = Atomic::from_ptr(&raw mut (*raw).nr_taken);
            Ring::new(slots, nr_put, nr_taken)
        }
    }

    /// Puts a folio into the ring of this CPU. `todo` may change when the worker starts. Returns
    /// false if there is no room.
    #[inline]
    fn put(folio: &Folio, todo: impl FnOnce(Todo) -> Todo) -> bool {
        let waiting = Waiting::new(folio);
        let off = local_interrupt_disable();
        Self::change(&off, |ring| ring.put(waiting).map(todo)).is_ok()
    }

    /// Puts a folio into the ring of this CPU. If the ring is full, the folio takes the place of
    /// the first folio, which is returned.
    #[cold]
    fn replace(folio: &Folio) -> Option<ARef<Folio>> {
        let waiting = Waiting::new(folio);
        let off = local_interrupt_disable();
        let first = Self::change(&off, |ring| ring.replace(waiting)).err()?;
        Some(first.folio)
    }

    /// Whether another folio may wait in the ring of this CPU for a write.
    #[cold]
    fn may_wait() -> bool {
        let off = local_interrupt_disable();
        Self::of_this_cpu(&off).core().may_wait()
    }

    /// Whether the ring of this CPU has room for the `nr` folios of a bio that is about to end.
    #[inline]
    pub fn has_room_for_bio(off: &LocalInterruptDisabled, nr: usize) -> bool {
        Self::of_this_cpu(off).core().has_room_for_bio(nr)
    }

    /// Changes the ring of this CPU, and starts the worker as the change requires.
    #[inline]
    fn change<'a>(
        off: &'a LocalInterruptDisabled,
        change: impl FnOnce(Ring<'a, FolioSlot, Atomic<usize>>) -> Result<Todo, Waiting>,
    ) -> Result<(), Waiting> {
        let ring = Self::of_this_cpu(off);
        match change(ring.core())? {
            Todo::Nothing => {}
            Todo::Soon => ring.begin(WAIT_MS, false),
            Todo::Now => ring.begin(0, true),
        }
        Ok(())
    }

    /// Drops the folios of the ring, as far as possible. Folios that come meanwhile may wait for
    /// the next run.
    ///
    /// Context: a task with interrupts on.
    ///
    /// # Safety
    ///
    /// The caller must be the ring's work, which runs once at a time.
    pub unsafe fn drop_all(&self) {
        might_sleep();
        let mut left = self.core().waiting().min(SLOTS);
        loop {
            let mut batch = DropBatch::new();
            for _ in 0..MOST {
                let Some(waiting) = self.core().take() else {
                    return;
                };
                if left == 0 && waiting.since != NEW {
                    // This run has tried the folio and put it back.
                    try_again(waiting);
                    return self.begin(WAIT_MS, false);
                }
                left = left.saturating_sub(1);
                batch.add(waiting);
            }
            drop(batch);
            if left == 0 {
                break;
            }
            sched::cond_resched();
        }
        self.begin(WAIT_MS, false);
    }

    /// Queues the work for a run in `wait` milliseconds. Work that is queued already keeps its
    /// time, unless `anew` is set.
    #[inline]
    fn begin(&self, wait: u32, anew: bool) {
        // SAFETY: The work lives by the type invariants, and may be queued in any context.
        unsafe { bindings::dropbehind_begin(self.0.get(), wait, anew) };
    }
}

/// Folios that a task has locked to drop them together. Dropping the value drops them.
///
/// # Invariants
///
/// - The first `nr` of `held` are [`Held`], and this value has their locks. They are in the page
///   cache `mapping`.
/// - The first `nr` of `words` are the words of the same folios, in any order. This value owns the
///   references of these words.
struct DropBatch {
    mapping: *mut bindings::address_space,
    nr: usize,
    held: [*mut bindings::folio; MOST],
    words: [*mut bindings::folio; MOST],
}

impl DropBatch {
    #[inline]
    fn new() -> Self {
        // INVARIANT: There are no folios.
        Self {
            mapping: null_mut(),
            nr: 0,
            held: [null_mut(); MOST],
            words: [null_mut(); MOST],
        }
    }

    /// Adds a folio. If the batch is full or of another page cache, its folios are dropped first.
    /// If the folio is locked, or a write to it is likely, it is tried again later.
    ///
    /// Context: a task with interrupts on.
    #[inline]
    fn add(&mut self, waiting: Waiting) {
        let Some(guard) = waiting.folio.try_lock() else {
            return try_again(waiting);
        };
        let Some(mapping) = guard.mapping() else {
            return guard.clear_dropbehind();
        };
        let (inode, start) = (mapping.host(), guard.pos());
        let bytes = start..start.wrapping_add(guard.size() as i64);
        // A writer that appends to its file writes to the last folio again.
        let waits_for_write = is_end(&bytes, inode.size()) && inode.is_open_for_write()
            || guard.flags() & REFERENCED != 0 && DropRing::may_wait();
        if waits_for_write && !is_old(waiting.since, now()) {
            drop(guard);
            return try_again(waiting);
        }
        if self.nr == MOST || self.nr > 0 && self.mapping != mapping.as_raw() {
            self.drop_all();
        }
        self.mapping = mapping.as_raw();
        // There is room for `MOST` folios.
        if let (Some(held), Some(word)) = (self.held.get_mut(self.nr), self.words.get_mut(self.nr))
        {
            // INVARIANT: The batch has the lock and the reference from here. The lock keeps the
            // folio in the page cache.
            forget(guard);
            *held = waiting.folio.as_raw();
            *word = waiting.into_word();
            self.nr = self.nr.saturating_add(1);
        }
    }

    /// Drops the folios that are still to be dropped, unlocks the others, and empties the batch.
    #[inline(never)]
    fn drop_all(&mut self) {
        let nr = core::mem::take(&mut self.nr);
        let (Some(held), Some(words)) = (self.held.get_mut(..nr), self.words.get(..nr)) else {
            return;
        };
        // SAFETY: By the type invariants these folios are held; `Held` is transparent over one.
        let held: &mut [Held] = unsafe { slice::from_raw_parts_mut(held.as_mut_ptr().cast(), nr) };
        // SAFETY: By the type invariants the folios are locked. The locks keep them in one page
        // cache.
        let dropped = unsafe { remove(held) };
        // SAFETY: The batch may release the locks. Each folio is unlocked once.
        let unlock = |folio: &Held| unsafe { bindings::folio_unlock(folio.as_raw()) };
        let (gone, staying) = held.split_at_checked(dropped).unwrap_or((held, &[]));
        let mut batch = bindings::folio_batch::default();
        let mut refs = [const { MaybeUninit::<u32>::uninit() }; MOST];
        // Free the last folio first, because the page allocator hands out the most recently freed
        // page first. So neighbours in a file become neighbours in memory, and a request has fewer
        // segments.
        for ((folio, place), refs) in gone.iter().rev().zip(&mut batch.folios).zip(&mut refs) {
            // The references of the page cache, and the reference of the word.
            refs.write(folio.nr_pages().saturating_add(1) as u32);
            *place = folio.as_raw();
            unlock(folio);
        }
        for folio in staying {
            let raw = folio.as_raw();
            unlock(folio);
            for word in words.iter().filter(|word| folio_of(**word) == raw) {
                // SAFETY: The batch owned the word, and no longer does. It holds each folio once,
                // because a folio is locked once.
                let waiting = unsafe { Waiting::from_word(*word) };
                waiting.into_iter().for_each(try_again);
            }
        }
        batch.nr = gone.len() as u8;
        // SAFETY: The folios have left the page cache, and the batch has these references on each.
        unsafe {
            bindings::dropbehind_del_lru(batch.folios.as_ptr(), gone.len() as u32);
            bindings::folios_put_refs(&mut batch, refs.as_mut_ptr().cast());
        }
    }
}

impl Drop for DropBatch {
    #[inline]
    fn drop(&mut self) {
        if self.nr != 0 {
            self.drop_all();
        }
    }
}

/// Puts a folio that could not be dropped back into a ring, unless it is no longer to be dropped or
/// was tried for long enough.
#[cold]
fn try_again(mut waiting: Waiting) {
    if !waiting.folio.seen().may_go() || is_old(waiting.since, now()) {
        return;
    }
    if waiting.since == NEW {
        waiting.since = now();
    }
    let off = local_interrupt_disable();
    let result = DropRing::change(&off, |ring| ring.put_back(waiting));
    // Interrupts are on again when the reference is dropped.
    drop(off);
    drop(result);
}
