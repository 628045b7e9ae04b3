// SPDX-License-Identifier: GPL-2.0

//! Inodes and their page cache, as far as writeback needs them.
//!
//! C header: [`include/linux/fs.h`](srctree/include/linux/fs.h)

use crate::{
    backing_dev::WbSection,
    bindings,
    ffi::c_long,
    page::PAGE_SHIFT,
    types::Opaque,
    writeback::policy::{
        PageCache,
        Written, //
    }, //
};

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

    /// Whether any of its pages is dirty. May change at any time.
    ///
    /// C counterpart: `mapping_tagged(mapping, PAGECACHE_TAG_DIRTY)`.
    #[inline]
    pub fn has_dirty_pages(&self) -> bool {
        // SAFETY: The page cache is live by the type invariants; the tag is read in one word.
        unsafe { bindings::mapping_dirty_tagged(self.as_raw()) }
    }

    /// Notes that there may be dirty dropbehind folios (`AS_DONTCACHE_DIRTY`): the flusher seeks
    /// what a kick is for in such page caches only.
    ///
    /// Context: any.
    #[inline]
    pub fn mark_dontcache_dirty(&self) {
        const BIT: usize = bindings::mapping_flags_AS_DONTCACHE_DIRTY as usize;
        // SAFETY: The page cache is live by the type invariants; its flags are only accessed
        // atomically. The test keeps their cache line shared.
        unsafe {
            let flags = &raw mut (*self.as_raw()).flags;
            if !bindings::test_bit(BIT, flags) {
                bindings::test_and_set_bit(BIT, flags);
            }
        }
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

impl PageCache for AddressSpace {
    fn is_under_writeback(&self) -> bool {
        // SAFETY: The page cache is live by the type invariants; the tag is read in one word.
        unsafe { bindings::mapping_writeback_tagged(self.as_raw()) }
    }
}
