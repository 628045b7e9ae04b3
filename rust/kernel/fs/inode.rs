// SPDX-License-Identifier: GPL-2.0

//! Inodes and their page cache, as far as writeback needs them.
//!
//! C header: [`include/linux/fs.h`](srctree/include/linux/fs.h)

use crate::{
    backing_dev::{
        BdiWriteback,
        WbSection, //
    },
    bindings,
    ffi::{
        c_long,
        c_ulong, //
    },
    folio::Folio,
    page::PAGE_SHIFT,
    sync::rcu,
    types::{
        NotThreadSafe,
        Opaque, //
    },
    writeback::{
        policy::{
            PageCache,
            Written, //
        },
        round::{
            Has,
            LOOKS, //
        }, //
    }, //
};
use core::ptr;

/// A file's inode (`struct inode`).
///
/// # Invariants
///
/// Instances are initialised and not freed for as long as a reference to them exists.
#[repr(transparent)]
pub struct Inode(Opaque<bindings::inode>);

// SAFETY: The methods below synchronise by themselves; an inode has no thread affinity.
unsafe impl Sync for Inode {}

impl Inode {
    /// Makes a reference of a pointer that C hands over.
    ///
    /// # Safety
    ///
    /// `ptr` must point at an inode that is initialised and is not freed for `'a`.
    #[inline]
    pub unsafe fn from_raw<'a>(ptr: *mut bindings::inode) -> &'a Self {
        // SAFETY: The caller promises a live inode for `'a`, and `Self` is transparent over it.
        unsafe { &*ptr.cast() }
    }

    /// The pointer that C knows the inode by.
    #[inline]
    pub fn as_raw(&self) -> *mut bindings::inode {
        self.0.get()
    }

    /// The size of the file system's blocks, in bytes.
    ///
    /// Of a block device it changes while nobody uses the device: two reads may differ.
    ///
    /// C counterpart: `i_blocksize()`.
    #[inline]
    pub fn block_size(&self) -> usize {
        // SAFETY: The inode is live by the type invariants. The field is a byte, which C reads and
        // writes whole, and READ_ONCE()s where it may change.
        let bits = unsafe { (&raw const (*self.as_raw()).i_blkbits).read_volatile() };
        1usize.wrapping_shl(bits.into())
    }

    /// The size of the file, in bytes. May change at any time.
    ///
    /// C counterpart: `i_size_read()`, on 64 bits.
    #[inline(always)]
    pub fn size(&self) -> i64 {
        // SAFETY: The inode is live by the type invariants; the field is one word.
        unsafe { (&raw const (*self.as_raw()).i_size).read_volatile() }
    }

    /// Whether anybody has the file open to write to it. May change at any time.
    ///
    /// C counterpart: `inode_is_open_for_write()`.
    #[inline(always)]
    pub fn is_open_for_write(&self) -> bool {
        // SAFETY: The inode is live by the type invariants; the number is read in one word.
        unsafe { (&raw const (*self.as_raw()).i_writecount.counter).read_volatile() > 0 }
    }

    /// Looks at the inode's wb, which it may have no more by the time that the caller has the answer.
    /// None if it has none, or is just getting another.
    ///
    /// Cheaper than a section: there is nothing to lock and to unlock.
    ///
    /// Context: any; `look` must not sleep.
    #[inline(always)]
    pub fn look_at_wb<R>(&self, look: impl FnOnce(&BdiWriteback) -> R) -> Option<R> {
        let _rcu = rcu::read_lock();
        // SAFETY: The inode is live by the type invariants. A wb that an inode has or had in this
        // section is not freed before its end.
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

/// `PAGECACHE_TAG_DIRTY`, which is a cast to bindgen.
const TAG_DIRTY: bindings::xa_mark_t = 0;

const DONTCACHE_DIRTY: c_ulong = 1 << bindings::mapping_flags_AS_DONTCACHE_DIRTY;
const DONTCACHE_LISTED: c_ulong = 1 << bindings::mapping_flags_AS_DONTCACHE_LISTED;

/// The page cache of an inode (`struct address_space`).
///
/// # Invariants
///
/// Instances belong to an inode, and neither is freed for as long as a reference to them exists.
#[repr(transparent)]
pub struct AddressSpace(Opaque<bindings::address_space>);

// SAFETY: The methods below read what does not change while the inode lives, or synchronise by
// themselves.
unsafe impl Sync for AddressSpace {}

impl AddressSpace {
    /// Makes a reference of a pointer that C hands over.
    ///
    /// # Safety
    ///
    /// `ptr` must point at the page cache of an inode (not at the swap cache), and that inode must
    /// not be freed for `'a`.
    #[inline]
    pub unsafe fn from_raw<'a>(ptr: *mut bindings::address_space) -> &'a Self {
        // SAFETY: The caller promises a live page cache for `'a`, and `Self` is transparent over
        // it.
        unsafe { &*ptr.cast() }
    }

    /// The pointer that C knows the page cache by.
    #[inline]
    pub fn as_raw(&self) -> *mut bindings::address_space {
        self.0.get()
    }

    /// The inode whose pages these are.
    ///
    /// C counterpart: `mapping->host`.
    #[inline]
    pub fn host(&self) -> &Inode {
        // SAFETY: By the type invariants the page cache belongs to a live inode, which `host` has
        // pointed at since it was initialised.
        unsafe { Inode::from_raw((*self.as_raw()).host) }
    }

    /// Whether dirty pages of this page cache are accounted and written back.
    ///
    /// C counterpart: `mapping_can_writeback()`.
    #[inline]
    pub fn can_writeback(&self) -> bool {
        // SAFETY: By the type invariants the inode is live, and so is its superblock's bdi.
        unsafe { bindings::mapping_can_writeback(self.as_raw()) }
    }

    /// Locks the index of its folios, and turns interrupts off.
    ///
    /// Context: any, outside a section of the inode's wb and of that lock.
    ///
    /// C counterpart: `xa_lock_irqsave(&mapping->i_pages)`.
    #[inline]
    pub fn lock_pages(&self) -> PagesGuard<'_> {
        // SAFETY: The page cache is live by the type invariants, so its lock is initialised.
        let flags = unsafe { bindings::mapping_lock_pages(self.as_raw()) };
        // INVARIANT: The lock was taken right above, with these flags.
        PagesGuard {
            mapping: self,
            flags,
            _not_send: NotThreadSafe,
        }
    }

    /// Whether any of its pages is dirty. May change at any time.
    ///
    /// C counterpart: `mapping_tagged(mapping, PAGECACHE_TAG_DIRTY)`.
    #[inline]
    pub fn has_dirty_pages(&self) -> bool {
        // SAFETY: The page cache is live by the type invariants; the tag is read in one word.
        unsafe { bindings::mapping_dirty_tagged(self.as_raw()) }
    }

    /// Notes that there may be dirty dropbehind folios (`AS_DONTCACHE_DIRTY`).
    ///
    /// Context: any.
    #[inline]
    pub fn mark_dontcache_dirty(&self) {
        self.set_flag(DONTCACHE_DIRTY);
    }

    /// Whether that is noted.
    #[inline]
    pub fn may_have_dontcache_dirty(&self) -> bool {
        self.raw_flags() & DONTCACHE_DIRTY != 0
    }

    /// Notes that the flusher finds these folios (`AS_DONTCACHE_LISTED`): see [`crate::flusher`].
    /// Under the lock of the wb's lists.
    #[inline]
    pub(crate) fn mark_dontcache_listed(&self) {
        self.set_flag(DONTCACHE_LISTED);
    }

    /// Whether the flusher has to be told of dirty dropbehind folios, which it would not find.
    #[inline(always)]
    pub fn is_dontcache_unlisted(&self) -> bool {
        self.raw_flags() & (DONTCACHE_DIRTY | DONTCACHE_LISTED) == DONTCACHE_DIRTY
    }

    /// Looks for dirty dropbehind folios, at `looks` dirty ones at most. If there is none, it is noted
    /// no longer that there may be.
    ///
    /// Context: any; under the lock of the wb's lists. Takes the lock of the folios.
    pub(crate) fn look_for_dontcache_dirty(&self, looks: usize) -> Has {
        if !self.may_have_dontcache_dirty() {
            return Has::Nothing;
        }
        let pages = self.lock_pages();
        let has = pages.find_dontcache_dirty(looks);
        if has == Has::Nothing {
            // Who dirties one notes it again, under the lock that is held here.
            self.clear_flag(DONTCACHE_DIRTY);
            self.clear_flag(DONTCACHE_LISTED);
        }
        has
    }

    /// Whether the inode, which gets into another list, belongs into `b_dontcache`: it does if it may
    /// have dirty dropbehind folios after a few looks. Notes that the flusher finds them there.
    ///
    /// Context: under the lock of the wb's lists.
    pub fn keep_dontcache_listed(&self) -> bool {
        let keeps = self.look_for_dontcache_dirty(LOOKS) != Has::Nothing;
        if keeps {
            self.mark_dontcache_listed();
        }
        keeps
    }

    #[inline(always)]
    fn raw_flags(&self) -> c_ulong {
        // SAFETY: The page cache is live by the type invariants; its flags are read in one load.
        unsafe { (&raw const (*self.as_raw()).flags).read_volatile() }
    }

    /// The test keeps the cache line shared where the flag is set already.
    #[inline(always)]
    fn set_flag(&self, flag: c_ulong) {
        if self.raw_flags() & flag == 0 {
            // SAFETY: The page cache is live by the type invariants; its flags are changed atomically.
            unsafe {
                bindings::test_and_set_bit(
                    flag.trailing_zeros() as usize,
                    &raw mut (*self.as_raw()).flags,
                )
            };
        }
    }

    #[inline(always)]
    fn clear_flag(&self, flag: c_ulong) {
        // SAFETY: As for `set_flag`.
        unsafe {
            bindings::test_and_clear_bit(
                flag.trailing_zeros() as usize,
                &raw mut (*self.as_raw()).flags,
            )
        };
    }

    /// Starts the writeback of dirty pages in `range`, and waits for none.
    ///
    /// What goes wrong is recorded in the page cache, for `fsync()` to tell.
    ///
    /// Context: sleeps.
    ///
    /// C counterpart: `filemap_flush_range()`.
    #[inline]
    pub fn flush_range(&self, range: Written) {
        self.flush(range, c_long::MAX);
    }

    /// The same for no more pages than it takes to hold `range`. A folio is written whole.
    ///
    /// Context: sleeps.
    #[inline]
    pub fn flush_range_as_many(&self, range: Written) {
        self.flush(range, range.pages(PAGE_SHIFT as u32) as c_long);
    }

    fn flush(&self, range: Written, pages: c_long) {
        // SAFETY: The page cache and its inode are live by the type invariants, and the range is
        // one of bytes that a file can have. `pages` is above zero.
        unsafe {
            bindings::rust_filemap_flush_range_nr(
                self.as_raw(),
                range.first(),
                range.last(),
                pages,
            );
        }
    }
}

/// The lock of a page cache's folios. Interrupts are off while it is held.
///
/// No folio comes in or goes, no dropbehind folio becomes dirty, and the inode keeps its wb.
///
/// # Invariants
///
/// The lock of `mapping->i_pages` is held, was taken with `flags`, and is this guard's to release.
#[must_use = "the lock is released when the guard is dropped"]
pub struct PagesGuard<'a> {
    mapping: &'a AddressSpace,
    flags: c_ulong,
    _not_send: NotThreadSafe,
}

impl PagesGuard<'_> {
    /// Whether `folio` is in this page cache.
    #[inline]
    pub fn has(&self, folio: &Folio) -> bool {
        // SAFETY: A folio that is referred to is live. Its field is one word, which for a folio of
        // this page cache only changes under the lock.
        let mapping = unsafe {
            (&raw const (*folio.as_raw()).__bindgen_anon_1.__bindgen_anon_1.mapping).read_volatile()
        };
        mapping == self.mapping.as_raw()
    }

    /// Whether any of the first `looks` dirty folios is dropbehind.
    fn find_dontcache_dirty(&self, looks: usize) -> Has {
        let mut cursor = bindings::xa_state {
            // SAFETY: The page cache is live by its type invariants, so its field can be named.
            xa: unsafe { &raw mut (*self.mapping.as_raw()).i_pages },
            // What XA_STATE() says: the walk begins at the root. A pointer that is only compared.
            xa_node: ptr::without_provenance_mut(3),
            ..Default::default()
        };
        for _ in 0..looks {
            // SAFETY: The lock of the index is held, so that it does not change during the walk.
            let entry = unsafe { bindings::xas_find_marked(&mut cursor, c_ulong::MAX, TAG_DIRTY) };
            if entry.is_null() {
                return Has::Nothing;
            }
            // With DAX an entry is a value and no folio: it has the lowest bit set.
            if entry.addr() & 1 == 0 {
                // SAFETY: The index holds a reference on the folio as long as its lock is held.
                let folio = unsafe { Folio::from_raw(entry.cast()) };
                if folio.is_dontcache_dirty() {
                    return Has::Dropbehind;
                }
            }
        }
        Has::Maybe
    }

    /// The wb of the inode. None if the inode was never dirtied.
    #[inline]
    pub fn wb(&self) -> Option<&BdiWriteback> {
        // SAFETY: By the type invariant of the page cache the inode is live. By that of the guard
        // the lock is held, without which the inode does not change its wb; it holds a reference
        // on it.
        unsafe {
            bindings::inode_to_wb(self.mapping.host().as_raw())
                .cast::<BdiWriteback>()
                .as_ref()
        }
    }
}

impl Drop for PagesGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: By the type invariants the lock is held, with these flags, and ours to release.
        unsafe { bindings::mapping_unlock_pages(self.mapping.as_raw(), self.flags) };
    }
}

impl PageCache for AddressSpace {
    fn is_under_writeback(&self) -> bool {
        // SAFETY: The page cache is live by the type invariants; the tag is read in one word.
        unsafe { bindings::mapping_writeback_tagged(self.as_raw()) }
    }
}
