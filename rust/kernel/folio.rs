// SPDX-License-Identifier: GPL-2.0

//! Folios.
//!
//! A folio is one or more physically contiguous pages of the page cache that are handled as a unit.
//! Three types define what code may do with it:
//!
//! | type | what holds | what it allows |
//! | --- | --- | --- |
//! | [`&Folio`](Folio) | the folio is not freed | read its flags; they may change at any time |
//! | [`&LockedFolio`](LockedFolio) | ... and this context holds its lock | what requires the lock |
//! | [`FolioGuard`] | ... and this guard holds the lock | the same, and unlocks when dropped |
//!
//! C headers: [`include/linux/page-flags.h`](srctree/include/linux/page-flags.h),
//! [`include/linux/pagemap.h`](srctree/include/linux/pagemap.h)

use crate::{
    bindings,
    fs::{
        AddressSpace,
        PagesGuard, //
    },
    page::PAGE_SHIFT,
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
/// The folio has data that its device does not have.
pub const DIRTY: usize = 1 << bindings::pageflags_PG_dirty;
/// The folio is under writeback.
pub const WRITEBACK: usize = 1 << bindings::pageflags_PG_writeback;
/// The folio leaves the page cache once it is clean.
pub const DROPBEHIND: usize = 1 << bindings::pageflags_PG_dropbehind;
/// The folio was used and may be used again soon.
pub const REFERENCED: usize = 1 << bindings::pageflags_PG_referenced;

/// A folio of the page cache (`struct folio`).
///
/// All flags are read in one load, unordered unless noted. Without the folio's lock, a flag may
/// have changed by the time that the caller uses the answer.
///
/// # Invariants
///
/// While a reference to them exists, instances have a reference count above zero. Their mapping is
/// the page cache of an inode, which is not freed while they are locked. It is null if they are in
/// no page cache, as new folios are. (They are neither anonymous memory nor slabs.)
#[repr(transparent)]
pub struct Folio(Opaque<bindings::folio>);

// SAFETY: The methods of `&Folio` change flags and reference counts atomically. Other fields they
// read in one word.
unsafe impl Sync for Folio {}

// SAFETY: `folio_get()` and `folio_put()` change the count that keeps the folio from being freed.
// Every folio has that count.
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
    /// Makes a reference of a C pointer.
    ///
    /// # Safety
    ///
    /// `ptr` must point at a folio that is or was in the page cache of an inode, or could be put
    /// there. Its reference count must stay above zero for `'a`.
    #[inline]
    pub unsafe fn from_raw<'a>(ptr: *mut bindings::folio) -> &'a Self {
        // INVARIANT: The caller promises this: a folio is removed from a page cache under its lock,
        // and has no mapping afterwards.
        // SAFETY: The caller promises a live folio for `'a`, and `Self` is transparent over it.
        unsafe { &*ptr.cast() }
    }

    /// The pointer that C uses for the folio.
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

    /// How many bytes the folio has. Stable under the same conditions as
    /// [`nr_pages`](Self::nr_pages).
    ///
    /// C counterpart: `folio_size()`.
    #[inline]
    pub fn size(&self) -> usize {
        self.nr_pages() << PAGE_SHIFT
    }

    /// The flags, for instance [`DIRTY`], all at one moment. Unordered.
    #[inline]
    pub fn flags(&self) -> usize {
        self.load_flags(Relaxed)
    }

    #[inline]
    fn load_flags<O: AcquireOrRelaxed>(&self, order: O) -> usize {
        // SAFETY: The folio is live by the type invariants; its flags are only accessed atomically.
        unsafe {
            Atomic::from_ptr(&raw mut (*self.as_raw()).__bindgen_anon_1.__bindgen_anon_1.flags.f)
        }
        .load(order)
    }

    /// Whether every byte of the folio is as new as on its device (`PG_uptodate`). Later reads of
    /// the folio's data are ordered after the test.
    ///
    /// C counterpart: `folio_test_uptodate()`.
    #[inline]
    pub fn test_uptodate(&self) -> bool {
        self.load_flags(Acquire) & UPTODATE != 0
    }

    /// Whether the folio is in the page cache whose lock is held.
    #[inline]
    pub fn is_in(&self, pages: &PagesGuard<'_>) -> bool {
        // SAFETY: The folio is live by the type invariants. The field is one word. For a folio of
        // this page cache the word only changes under the lock.
        let mapping = unsafe {
            (&raw const (*self.as_raw()).__bindgen_anon_1.__bindgen_anon_1.mapping).read_volatile()
        };
        mapping == pages.mapping().as_raw()
    }

    /// Whether a process maps the folio. A locked folio that is not mapped stays unmapped.
    ///
    /// C counterpart: `folio_mapped()`.
    #[inline]
    pub fn is_mapped(&self) -> bool {
        // SAFETY: The folio is live by the type invariants.
        unsafe { bindings::folio_mapped(self.as_raw()) }
    }

    /// Whether the folio's lock is held (`PG_locked`).
    ///
    /// C counterpart: `folio_test_locked()`.
    #[inline]
    pub fn test_locked(&self) -> bool {
        self.flags() & LOCKED != 0
    }

    /// Locks the folio if its lock is free.
    ///
    /// Context: any.
    ///
    /// C counterpart: `folio_trylock()`.
    #[inline]
    pub fn try_lock(&self) -> Option<FolioGuard<'_>> {
        // SAFETY: The folio is live by the type invariants.
        if unsafe { bindings::folio_trylock(self.as_raw()) } {
            // INVARIANT: `folio_trylock()` took the lock. The guard has it from here.
            Some(FolioGuard {
                folio: self,
                _not_send: NotThreadSafe,
            })
        } else {
            None
        }
    }
}

/// A folio whose lock the current context holds.
///
/// Exists only behind a reference: from a [`FolioGuard`], or adopted from C by
/// [`LockedFolio::assume_locked`]. A reference cannot be sent to another thread.
///
/// # Invariants
///
/// The current context holds the folio's lock while a reference to an instance exists.
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
    /// `ptr` must be valid for [`Folio::from_raw`], and the current context must hold the folio's
    /// lock for the whole of `'a`. It must not drop the folio meanwhile, because that frees its
    /// buffers.
    #[inline]
    pub unsafe fn assume_locked<'a>(ptr: *mut bindings::folio) -> &'a Self {
        // INVARIANT: The caller promises the lock for `'a`.
        // SAFETY: A locked folio is live, and `Self` is transparent over it.
        let folio: &Self = unsafe { &*ptr.cast() };
        debug_assert!(folio.test_locked());
        folio
    }

    /// The page cache of the folio, which the lock keeps. None if the folio has left it.
    ///
    /// C counterpart: `folio->mapping`.
    #[inline]
    pub fn mapping(&self) -> Option<&AddressSpace> {
        // SAFETY: The folio is live by the type invariants, and the field is valid in any folio. A
        // page cache, and with it its inode, is not freed while it has a locked folio.
        unsafe {
            (*self.as_raw())
                .__bindgen_anon_1
                .__bindgen_anon_1
                .mapping
                .cast::<AddressSpace>()
                .as_ref()
        }
    }

    /// The position of the folio in its file, in bytes.
    ///
    /// C counterpart: `folio_pos()`.
    #[inline]
    pub fn pos(&self) -> i64 {
        // SAFETY: The folio is live by the type invariants, and the lock keeps its index.
        let index = unsafe {
            let cached = &raw const (*self.as_raw()).__bindgen_anon_1.__bindgen_anon_1;
            (*cached).__bindgen_anon_2.index
        };
        (index as i64) << PAGE_SHIFT
    }

    /// Marks all data of the folio as valid. Earlier writes of the data are ordered before.
    ///
    /// C counterpart: `folio_mark_uptodate()`.
    #[inline]
    pub fn mark_uptodate(&self) {
        // SAFETY: The folio is live by the type invariants; the flag is set atomically.
        unsafe { bindings::folio_mark_uptodate(self.as_raw()) };
    }

    /// Zeroes the bytes of `outer` that are not in `inner`; both count from the folio's beginning.
    /// Bytes beyond the folio are omitted.
    ///
    /// C counterpart: `folio_zero_segments()`.
    pub fn zero_outside(&self, outer: Range<usize>, inner: Range<usize>) {
        let end = outer.end.min(self.size());
        // SAFETY: The folio is live by the type invariants, and its data may be written under its
        // lock. C zeroes from a start to an end above it, and both ends are within the folio.
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
}

/// The lock of a folio. Dropping it unlocks the folio.
///
/// # Invariants
///
/// The lock of `folio` is held, and this guard has to release it.
#[must_use = "the folio unlocks when the guard is dropped"]
pub struct FolioGuard<'a> {
    folio: &'a Folio,
    _not_send: NotThreadSafe,
}

impl Deref for FolioGuard<'_> {
    type Target = LockedFolio;

    #[inline]
    fn deref(&self) -> &LockedFolio {
        // SAFETY: By the type invariants the lock is held while `self` is borrowed. A function that
        // drops the folio takes `self`.
        unsafe { LockedFolio::assume_locked(self.folio.as_raw()) }
    }
}

impl Drop for FolioGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: By the type invariants the lock is held, and this guard may release it.
        unsafe { bindings::folio_unlock(self.folio.as_raw()) };
    }
}
