// SPDX-License-Identifier: GPL-2.0

//! Inodes and their page cache, as far as writeback needs them.
//!
//! C header: [`include/linux/fs.h`](srctree/include/linux/fs.h)

use crate::{
    bindings,
    types::{
        NotThreadSafe,
        Opaque, //
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
    /// Makes a reference of a C pointer.
    ///
    /// # Safety
    ///
    /// `ptr` must point at an inode that is initialised and is not freed for `'a`.
    #[inline]
    pub unsafe fn from_raw<'a>(ptr: *mut bindings::inode) -> &'a Self {
        // SAFETY: The caller promises a live inode for `'a`, and `Self` is transparent over it.
        unsafe { &*ptr.cast() }
    }

    /// The pointer that C uses for the inode.
    #[inline]
    pub fn as_raw(&self) -> *mut bindings::inode {
        self.0.get()
    }

    /// The size of the file system's blocks, in bytes.
    ///
    /// The block size of a block device changes while the device has no user: two reads may differ.
    ///
    /// C counterpart: `i_blocksize()`.
    #[inline]
    pub fn block_size(&self) -> usize {
        // SAFETY: The inode is live by the type invariants. The field is a byte, which C reads and
        // writes whole, and READ_ONCE()s if it may change.
        let bits = unsafe { (&raw const (*self.as_raw()).i_blkbits).read_volatile() };
        1usize.wrapping_shl(bits.into())
    }

    /// The size of the file, in bytes. May change at any time.
    ///
    /// C counterpart: `i_size_read()`, on 64 bits.
    #[cfg(CONFIG_64BIT)]
    #[inline]
    pub fn size(&self) -> i64 {
        // SAFETY: The inode is live by the type invariants; the field is one word.
        unsafe { (&raw const (*self.as_raw()).i_size).read_volatile() }
    }

    /// Whether the file is open for writing. May change at any time.
    ///
    /// C counterpart: `inode_is_open_for_write()`.
    pub fn is_open_for_write(&self) -> bool {
        // SAFETY: The inode is live by the type invariants; the number is read in one word.
        unsafe { (&raw const (*self.as_raw()).i_writecount.counter).read_volatile() > 0 }
    }
}

/// The page cache of an inode (`struct address_space`).
///
/// # Invariants
///
/// Instances belong to an inode, and neither is freed for as long as a reference to them exists.
#[repr(transparent)]
pub struct AddressSpace(Opaque<bindings::address_space>);

// SAFETY: The methods below read fields that do not change while the inode lives, or synchronise by
// themselves.
unsafe impl Sync for AddressSpace {}

impl AddressSpace {
    /// Makes a reference of a C pointer.
    ///
    /// # Safety
    ///
    /// `ptr` must point at the page cache of an inode (not at the swap cache), and that inode must
    /// not be freed for `'a`.
    #[inline]
    pub unsafe fn from_raw<'a>(ptr: *mut bindings::address_space) -> &'a Self {
        // SAFETY: The caller promises a live page cache for `'a`. `Self` is transparent over it.
        unsafe { &*ptr.cast() }
    }

    /// The pointer that C uses for the page cache.
    #[inline]
    pub fn as_raw(&self) -> *mut bindings::address_space {
        self.0.get()
    }

    /// The inode of these pages.
    ///
    /// C counterpart: `mapping->host`.
    #[inline]
    pub fn host(&self) -> &Inode {
        // SAFETY: By the type invariants the page cache belongs to a live inode. `host` points at
        // it since initialisation.
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

    /// Takes the lock of the page cache (`i_pages`), and disables interrupts (not with
    /// `PREEMPT_RT`) until this guard and all others are dropped, in any order.
    ///
    /// Context: any but NMI, without that lock, which `unlocked_inode_to_wb_begin()` may have
    /// taken.
    ///
    /// C counterpart: `xa_lock_irqsave(&mapping->i_pages)`, whose flags have to be put back in the
    /// opposite order.
    #[inline]
    pub fn lock_pages(&self) -> PagesGuard<'_> {
        // SAFETY: The page cache is live by the type invariants, so its lock is initialised.
        unsafe { bindings::spin_lock_irq_disable(&raw mut (*self.as_raw()).i_pages.xa_lock) };
        // INVARIANT: The lock was taken above.
        PagesGuard {
            mapping: self,
            _not_send: NotThreadSafe,
        }
    }
}

/// The lock of a page cache (`i_pages`).
///
/// While it is held, no folio is added or removed, no dropbehind folio becomes dirty, and the inode
/// keeps its wb.
///
/// # Invariants
///
/// The lock of `mapping->i_pages` is held. This guard has to release it.
#[must_use = "the lock is released when the guard is dropped"]
pub struct PagesGuard<'a> {
    mapping: &'a AddressSpace,
    _not_send: NotThreadSafe,
}

impl PagesGuard<'_> {
    /// The page cache whose lock this is.
    #[inline]
    pub fn mapping(&self) -> &AddressSpace {
        self.mapping
    }
}

impl Drop for PagesGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        let mapping = self.mapping.as_raw();
        // SAFETY: By the type invariants the lock is held, and this guard may release it.
        unsafe { bindings::spin_unlock_irq_enable(&raw mut (*mapping).i_pages.xa_lock) };
    }
}
