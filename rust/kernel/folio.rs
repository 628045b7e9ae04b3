// SPDX-License-Identifier: GPL-2.0

//! Folios.
//!
//! A folio is one or more physically contiguous pages of the page cache that are handled as one.
//! Three types say how much the code at hand may do with it:
//!
//! | type | what holds | what it allows |
//! | --- | --- | --- |
//! | [`&Folio`](Folio) | the folio is not freed | read its flags; they may change at any time |
//! | [`&LockedFolio`](LockedFolio) | ... and the current context holds its lock | what C asserts the lock for |
//! | [`FolioGuard`] | ... and this guard is what holds the lock | the same, and unlocks when dropped |
//!
//! C headers: [`include/linux/page-flags.h`](srctree/include/linux/page-flags.h),
//! [`include/linux/pagemap.h`](srctree/include/linux/pagemap.h)

use crate::{
    bindings,
    drop_batch,
    fs::{
        AddressSpace,
        PagesGuard, //
    },
    sync::{
        aref::AlwaysRefCounted,
        atomic::{
            ordering::AcquireOrRelaxed,
            Acquire,
            Atomic,
            Relaxed, //
        }, //
    },
    types::{
        NotThreadSafe,
        Opaque, //
    },
    writeback::{
        account,
        later,
        together, //
    }, //
};
use core::{
    ops::{
        Deref,
        Range, //
    },
    ptr::NonNull, //
};

const LOCKED: usize = 1 << bindings::pageflags_PG_locked;
const UPTODATE: usize = 1 << bindings::pageflags_PG_uptodate;
const DIRTY: usize = 1 << bindings::pageflags_PG_dirty;
const WRITEBACK: usize = 1 << bindings::pageflags_PG_writeback;
const DROPBEHIND: usize = 1 << bindings::pageflags_PG_dropbehind;

/// A folio of the page cache (`struct folio`).
///
/// Its flags are read one by one and without order. Unless its lock is held, any of them may have
/// changed by the time that the caller looks at the answer.
///
/// # Invariants
///
/// For as long as a reference to them exists instances have a reference count above zero, and are as
/// the page cache has them: what they have as their mapping is the page cache of an inode, which is
/// not freed while they are locked, or null if they are in none, as new ones are. (Neither anonymous
/// memory nor slabs.)
#[repr(transparent)]
pub struct Folio(Opaque<bindings::folio>);

// SAFETY: A folio has no thread affinity; every operation below is atomic or done under its lock.
unsafe impl Send for Folio {}

// SAFETY: The methods of `&Folio` read flags and change reference counts atomically.
unsafe impl Sync for Folio {}

// SAFETY: `folio_get()` and `folio_put()` change the count that keeps the folio from being freed,
// and every folio has that count.
unsafe impl AlwaysRefCounted for Folio {
    #[inline]
    fn inc_ref(&self) {
        // SAFETY: `self` exists, so by the type invariants its reference count is above zero.
        unsafe { bindings::folio_get(self.as_raw()) };
    }

    #[inline]
    unsafe fn dec_ref(obj: NonNull<Self>) {
        // SAFETY: The caller owns the reference that is dropped here.
        unsafe { bindings::folio_put(obj.as_ptr().cast()) };
    }
}

impl Folio {
    /// Makes a reference of a pointer that C hands over.
    ///
    /// # Safety
    ///
    /// `ptr` must point at a folio that is in the page cache of an inode, was, or could be put there,
    /// and whose reference count stays above zero for `'a`.
    #[inline]
    pub unsafe fn from_raw<'a>(ptr: *mut bindings::folio) -> &'a Self {
        // INVARIANT: The caller promises it: whoever removes a folio from a page cache has its lock,
        // and leaves no mapping.
        // SAFETY: The caller promises a live folio for `'a`, and `Self` is transparent over it.
        unsafe { &*ptr.cast() }
    }

    /// The pointer that C knows the folio by.
    #[inline]
    pub fn as_raw(&self) -> *mut bindings::folio {
        self.0.get()
    }

    /// How many pages of `PAGE_SIZE` bytes the folio has. Stable only while it cannot be split:
    /// under its lock, or while it has more references than the page cache's.
    ///
    /// C counterpart: `folio_nr_pages()`.
    #[inline]
    pub fn nr_pages(&self) -> usize {
        // SAFETY: The folio is live by the type invariants.
        unsafe { bindings::folio_nr_pages(self.as_raw()) }
    }

    /// How many bytes the folio has. Stable when [`nr_pages`](Self::nr_pages) is.
    ///
    /// C counterpart: `folio_size()`.
    #[inline]
    pub fn size(&self) -> usize {
        // SAFETY: The folio is live by the type invariants.
        unsafe { bindings::folio_size(self.as_raw()) }
    }

    /// The flags at the moment.
    #[inline(always)]
    fn flags<O: AcquireOrRelaxed>(&self, order: O) -> usize {
        // SAFETY: The folio is live by the type invariants; its flags are only accessed atomically.
        let flags = unsafe {
            Atomic::from_ptr(&raw mut (*self.as_raw()).__bindgen_anon_1.__bindgen_anon_1.flags.f)
        };
        flags.load(order)
    }

    /// Whether the folio has data that its device does not have (`PG_dirty`).
    ///
    /// C counterpart: `folio_test_dirty()`.
    #[inline]
    pub fn test_dirty(&self) -> bool {
        self.flags(Relaxed) & DIRTY != 0
    }

    /// Whether every byte of the folio is as new as its device's (`PG_uptodate`). Reads of the
    /// folio's data that follow are ordered after the test.
    ///
    /// C counterpart: `folio_test_uptodate()`.
    #[inline]
    pub fn test_uptodate(&self) -> bool {
        self.flags(Acquire) & UPTODATE != 0
    }

    /// Whether the folio is on its way to its device (`PG_writeback`).
    ///
    /// C counterpart: `folio_test_writeback()`.
    #[inline]
    pub fn test_writeback(&self) -> bool {
        self.flags(Relaxed) & WRITEBACK != 0
    }

    /// Whether the folio is to leave the page cache once it is clean (`PG_dropbehind`).
    ///
    /// C counterpart: `folio_test_dropbehind()`.
    #[inline]
    pub fn test_dropbehind(&self) -> bool {
        self.flags(Relaxed) & DROPBEHIND != 0
    }

    /// Takes dropbehind away from the folio, and says what its flags were at that moment. A full
    /// barrier.
    ///
    /// Under the lock of the page cache that the folio is in: so do those who make a dropbehind
    /// folio dirty. Of a folio that is in another one nothing is changed.
    ///
    /// C counterpart: `folio_test_clear_dropbehind()`, which says less.
    #[inline]
    pub fn claim(&self, pages: &PagesGuard<'_>) -> Option<account::Flags> {
        if !pages.has(self) {
            return None;
        }
        // SAFETY: The folio is live by the type invariants; the flag is cleared atomically.
        let before = unsafe { bindings::folio_fetch_clear_dropbehind(self.as_raw()) };
        Some(account_flags(before))
    }

    /// Whether the folio counts as dirty and dropbehind, by both flags at one moment. Unordered.
    #[inline]
    pub fn is_dontcache_dirty(&self) -> bool {
        account_flags(self.flags(Relaxed)).counts()
    }

    /// What decides whether the folio is to be dropped, all at one moment. Unordered.
    #[inline(always)]
    pub fn seen(&self) -> together::Seen {
        let flags = self.flags(Relaxed);
        together::Seen {
            dropbehind: flags & DROPBEHIND != 0,
            dirty: flags & DIRTY != 0,
            writeback: flags & WRITEBACK != 0,
        }
    }

    /// Takes dropbehind from a folio that has left the page cache.
    ///
    /// C counterpart: `folio_clear_dropbehind()`.
    #[inline(always)]
    pub(crate) fn clear_dropbehind(&self) {
        // SAFETY: The folio is live by the type invariants; the flag is cleared atomically.
        unsafe { bindings::folio_clear_dropbehind(self.as_raw()) };
    }

    /// Whether anybody has the folio in its address space. Nobody comes to have it while it is locked
    /// and nobody has.
    ///
    /// C counterpart: `folio_mapped()`.
    #[inline(always)]
    pub fn is_mapped(&self) -> bool {
        // SAFETY: The folio is live by the type invariants.
        unsafe { bindings::folio_mapped(self.as_raw()) }
    }

    /// Whether anybody holds the folio's lock (`PG_locked`).
    ///
    /// C counterpart: `folio_test_locked()`.
    #[inline]
    pub fn test_locked(&self) -> bool {
        self.flags(Relaxed) & LOCKED != 0
    }

    /// Locks the folio, and sleeps until it can.
    ///
    /// Context: may sleep. The caller holds no lock of a folio of higher index.
    ///
    /// C counterpart: `folio_lock()`.
    #[inline]
    pub fn lock(&self) -> FolioGuard<'_> {
        // SAFETY: The folio is live by the type invariants.
        unsafe { bindings::folio_lock(self.as_raw()) };
        // INVARIANT: `folio_lock()` returns with the lock held, and the guard has it from here.
        FolioGuard {
            folio: self,
            _not_send: NotThreadSafe,
        }
    }

    /// Locks the folio if nobody holds its lock.
    ///
    /// Context: any.
    ///
    /// C counterpart: `folio_trylock()`.
    #[inline]
    pub fn try_lock(&self) -> Option<FolioGuard<'_>> {
        // SAFETY: The folio is live by the type invariants.
        if unsafe { bindings::folio_trylock(self.as_raw()) } {
            // INVARIANT: `folio_trylock()` took the lock, and the guard has it from here.
            Some(FolioGuard {
                folio: self,
                _not_send: NotThreadSafe,
            })
        } else {
            None
        }
    }
}

/// What of a word of flags decides whether the folio counts.
#[inline(always)]
fn account_flags(word: usize) -> account::Flags {
    account::Flags {
        dirty: word & DIRTY != 0,
        dropbehind: word & DROPBEHIND != 0,
    }
}

/// A folio whose lock the current context holds.
///
/// Only ever seen behind a reference: from a [`FolioGuard`], or adopted from C by
/// [`LockedFolio::assume_locked`]. A reference cannot be sent to another thread.
///
/// # Invariants
///
/// The folio's lock is held by the current context for as long as a reference to an instance
/// exists.
#[repr(transparent)]
pub struct LockedFolio {
    folio: Folio,
    _not_send: NotThreadSafe,
}

impl Deref for LockedFolio {
    type Target = Folio;

    #[inline]
    fn deref(&self) -> &Folio {
        &self.folio
    }
}

impl LockedFolio {
    /// Adopts a folio that C has locked.
    ///
    /// # Safety
    ///
    /// `ptr` must point at a folio of which [`Folio::from_raw`] may make a reference, and whose lock
    /// the current context holds for the whole of `'a`. It must not drop the folio meanwhile, which
    /// frees its buffers.
    #[inline]
    pub unsafe fn assume_locked<'a>(ptr: *mut bindings::folio) -> &'a Self {
        // INVARIANT: The caller promises the lock for `'a`.
        // SAFETY: A locked folio is live, and `Self` is transparent over it.
        let folio: &Self = unsafe { &*ptr.cast() };
        debug_assert!(folio.test_locked());
        folio
    }

    /// The page cache that the folio is in, which the lock keeps, or null if it is in none.
    ///
    /// C counterpart: `folio->mapping`.
    #[inline]
    pub(crate) fn raw_mapping(&self) -> *mut bindings::address_space {
        // SAFETY: The folio is live by the type invariants, and the field is valid in any folio.
        unsafe { (*self.as_raw()).__bindgen_anon_1.__bindgen_anon_1.mapping }
    }

    /// Where in its file the folio begins, in bytes.
    ///
    /// C counterpart: `folio_pos()`.
    #[inline]
    pub fn pos(&self) -> i64 {
        // SAFETY: The folio is live by the type invariants, and the lock keeps its index.
        unsafe { bindings::folio_pos(self.as_raw()) }
    }

    /// Whether the folio's file ends in it, and is open to be written to: who appends to the file
    /// writes to the folio again.
    #[inline(always)]
    pub fn is_appended_to(&self) -> bool {
        let mapping = self.raw_mapping();
        if mapping.is_null() {
            return false;
        }
        // SAFETY: By the type invariants of `Folio` it is a page cache that is not freed while the folio
        // is locked.
        let inode = unsafe { AddressSpace::from_raw(mapping) }.host();
        let start = self.pos();
        let bytes = start..start.wrapping_add(self.size() as i64);
        later::is_end(bytes, inode.size()) && inode.is_open_for_write()
    }

    /// Marks all data of the folio as valid. Writes of the data are ordered before.
    ///
    /// C counterpart: `folio_mark_uptodate()`.
    #[inline]
    pub fn mark_uptodate(&self) {
        // SAFETY: The folio is live by the type invariants; the flag is set atomically.
        unsafe { bindings::folio_mark_uptodate(self.as_raw()) };
    }

    /// Zeroes the bytes of `outer` that are not in `inner`; both count from the folio's beginning.
    /// Bytes that the folio does not have are left out.
    ///
    /// C counterpart: `folio_zero_segments()`.
    pub fn zero_outside(&self, outer: Range<usize>, inner: Range<usize>) {
        let end = outer.end.min(self.size());
        // SAFETY: The folio is live by the type invariants, and its data may be written under its
        // lock; C zeroes from a start to an end above it, and both ends are within the folio.
        unsafe {
            bindings::folio_zero_segments(
                self.as_raw(),
                inner.end,
                end,
                outer.start,
                inner.start.min(end),
            )
        };
    }

    /// Marks the folio as one to leave the page cache once it is clean.
    ///
    /// For a folio that is clean: the counter of dirty dropbehind pages follows changes of the
    /// dirty flag, not this one.
    ///
    /// C counterpart: `folio_set_dropbehind()`.
    #[inline]
    pub fn set_dropbehind(&self) {
        // SAFETY: The folio is live by the type invariants; the flag is set atomically.
        unsafe { bindings::folio_set_dropbehind(self.as_raw()) };
    }
}

/// The lock of a folio. Dropping it unlocks the folio.
///
/// # Invariants
///
/// The lock of `folio` is held, and it is this guard's to release.
#[must_use = "the folio unlocks when the guard is dropped"]
pub struct FolioGuard<'a> {
    folio: &'a Folio,
    _not_send: NotThreadSafe,
}

impl FolioGuard<'_> {
    /// Drops the folio from its page cache, if it is dropbehind, clean and nobody maps it, and unlocks
    /// it. Keeps dropbehind if somebody's use of the folio prevents that.
    ///
    /// It takes the guard, from which the folio's buffers are borrowed: they are freed.
    ///
    /// Context: may sleep.
    ///
    /// C counterpart: `filemap_end_dropbehind()`.
    #[inline]
    pub fn end_dropbehind(self) {
        if self.raw_mapping().is_null() {
            // Somebody else has taken it out.
            if self.seen().may_go() {
                self.clear_dropbehind();
            }
            return;
        }
        // SAFETY: By the type invariants the folio is locked by this guard, from which nothing is
        // borrowed any more. Its lock keeps it in the page cache, and that has a reference on it until
        // it leaves; `self.folio` was borrowed from who has another.
        unsafe { drop_batch::drop_locked(NonNull::from(self.folio).cast(), false) };
    }
}

impl Deref for FolioGuard<'_> {
    type Target = LockedFolio;

    #[inline]
    fn deref(&self) -> &LockedFolio {
        // SAFETY: By the type invariants the lock is held for as long as `self` is borrowed, and who
        // drops the folio takes `self`.
        unsafe { LockedFolio::assume_locked(self.folio.as_raw()) }
    }
}

impl Drop for FolioGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: By the type invariants the lock is held and ours to release.
        unsafe { bindings::folio_unlock(self.folio.as_raw()) };
    }
}
