// SPDX-License-Identifier: GPL-2.0

//! Buffers: the blocks of a folio, one by one.
//!
//! A file system with buffers keeps a `buffer_head` for each block of a folio, with the place of
//! the block on the device, and its state. The buffers form a ring that is attached to the folio.
//! The folio's lock keeps the ring, so everything here borrows from a [`LockedFolio`]:
//!
//! | type | meaning | ends with |
//! | --- | --- | --- |
//! | [`BufferRing`] | all buffers of a folio | the folio's lock |
//! | [`&BufferHead`](BufferHead) | one buffer | the folio's lock |
//!
//! C header: [`include/linux/buffer_head.h`](srctree/include/linux/buffer_head.h)

use crate::{
    bindings,
    folio::LockedFolio,
    fs::Inode,
    sync::atomic::{
        ordering::AcquireOrRelaxed,
        Acquire,
        Atomic,
        Relaxed, //
    },
    types::Opaque,
    writeback::buffer_walk, //
};
use core::{
    num::NonZeroUsize,
    ops::Range,
    ptr::NonNull, //
};

const UPTODATE: usize = 1 << bindings::bh_state_bits_BH_Uptodate;
const MAPPED: usize = 1 << bindings::bh_state_bits_BH_Mapped;
const NEW: usize = 1 << bindings::bh_state_bits_BH_New;
const DELAY: usize = 1 << bindings::bh_state_bits_BH_Delay;
const UNWRITTEN: usize = 1 << bindings::bh_state_bits_BH_Unwritten;

/// The state of a block of a folio (`struct buffer_head`).
///
/// Flags are read one by one and unordered, unless noted. I/O on the buffer changes some of them at
/// any time; the others change under the folio's lock.
///
/// # Invariants
///
/// Instances belong to the ring of a folio whose lock is held by the current context while a
/// reference to them exists. (The ring of a locked folio
/// is neither freed nor relinked: `try_to_free_buffers()` requires the lock.) The size of the block
/// is a power of two and at least a sector: C makes no other buffers.
#[repr(transparent)]
pub struct BufferHead(Opaque<bindings::buffer_head>);

impl BufferHead {
    /// Makes a reference of a C pointer.
    ///
    /// # Safety
    ///
    /// `ptr` must point at a buffer in the ring of a folio whose lock the current context holds for
    /// the whole of `'a`.
    #[inline]
    pub unsafe fn from_raw<'a>(ptr: *mut bindings::buffer_head) -> &'a Self {
        // INVARIANT: The caller promises this.
        // SAFETY: By that promise the buffer lives for `'a`; `Self` is transparent over it.
        unsafe { &*ptr.cast() }
    }

    /// The pointer that C uses for the buffer.
    #[inline]
    pub fn as_raw(&self) -> *mut bindings::buffer_head {
        self.0.get()
    }

    /// The size of its block, in bytes.
    ///
    /// C counterpart: `bh->b_size`.
    #[inline]
    pub fn size(&self) -> usize {
        // SAFETY: The buffer lives by the type invariants; its size changes only under the lock.
        unsafe { (*self.as_raw()).b_size }
    }

    /// The logarithm of the size of its block, to base two.
    #[inline]
    fn block_bits(&self) -> u32 {
        // SAFETY: A block is at least a sector.
        unsafe { NonZeroUsize::new_unchecked(self.size()) }.trailing_zeros()
    }

    /// The next buffer of the ring. Private, because a walk along the ring does not end.
    #[inline]
    fn next(&self) -> &Self {
        // SAFETY: The ring is complete by the type invariants: the next buffer belongs to it.
        unsafe { Self::from_raw((*self.as_raw()).b_this_page) }
    }

    /// The present flags.
    #[inline]
    fn state<O: AcquireOrRelaxed>(&self, order: O) -> usize {
        // SAFETY: The buffer lives by the type invariants; its flags are only accessed atomically.
        unsafe { Atomic::from_ptr(&raw mut (*self.as_raw()).b_state) }.load(order)
    }
}

impl buffer_walk::Buffer for &BufferHead {
    #[inline]
    fn is_ready(self) -> bool {
        self.state(Acquire) & (MAPPED | UPTODATE | NEW) == MAPPED | UPTODATE
    }

    #[inline]
    fn is_uptodate(self) -> bool {
        self.state(Acquire) & UPTODATE != 0
    }

    #[inline]
    fn set_uptodate(self) {
        // SAFETY: The buffer lives by the type invariants; the flag is set atomically.
        unsafe { bindings::set_buffer_uptodate(self.as_raw()) };
    }

    #[inline]
    fn is_mapped(self) -> bool {
        self.state(Relaxed) & MAPPED != 0
    }

    #[inline]
    fn is_new(self) -> bool {
        self.state(Relaxed) & NEW != 0
    }

    #[inline]
    fn clear_new(self) {
        // SAFETY: The buffer lives by the type invariants; the flag is cleared atomically.
        unsafe { bindings::clear_buffer_new(self.as_raw()) };
    }

    #[inline]
    fn is_on_device(self) -> bool {
        self.state(Relaxed) & (DELAY | UNWRITTEN) == 0
    }

    #[inline]
    fn mark_dirty(self) {
        // SAFETY: The buffer lives by the type invariants, and its folio's lock keeps the mapping.
        unsafe { bindings::mark_buffer_dirty(self.as_raw()) };
    }

    #[inline]
    fn wait(self) {
        // SAFETY: The buffer lives by the type invariants.
        unsafe { bindings::wait_on_buffer(self.as_raw()) };
    }
}

/// The buffers of a locked folio, in the order of their blocks.
///
/// # Invariants
///
/// - `head` is the first buffer of the ring of a folio that is locked for `'a`, of `folio_size`
///   bytes;
/// - the ring has a buffer for each `1 << block_bits` bytes of the folio.
#[derive(Clone, Copy)]
pub struct BufferRing<'a> {
    head: &'a BufferHead,
    folio_size: usize,
    block_bits: u32,
}

impl<'a> BufferRing<'a> {
    /// Makes a ring from the pointer to its first buffer.
    ///
    /// # Safety
    ///
    /// `head` must point at the first buffer of a ring that belongs to `folio` and is complete: one
    /// buffer for each block.
    #[inline]
    pub unsafe fn from_raw(folio: &'a LockedFolio, head: *mut bindings::buffer_head) -> Self {
        // SAFETY: The caller promises the ring, and `folio` is locked for `'a`.
        let head = unsafe { BufferHead::from_raw(head) };
        // INVARIANT: The caller promises a complete ring: it has one buffer for each block, and
        // these are of one size.
        Self {
            head,
            folio_size: folio.size(),
            block_bits: head.block_bits(),
        }
    }

    /// The buffers of `folio`, if it has any.
    ///
    /// C counterpart: `folio_buffers()`.
    ///
    /// # Safety
    ///
    /// If `folio` has private data, that must be buffers.
    #[inline]
    pub unsafe fn of(folio: &'a LockedFolio) -> Option<Self> {
        // SAFETY: A locked folio is live.
        let head = NonNull::new(unsafe { bindings::folio_buffers(folio.as_raw()) })?;
        // SAFETY: The caller promises buffers, and attached buffers are a ring.
        Some(unsafe { Self::from_raw(folio, head.as_ptr()) })
    }

    /// The buffers of `folio`. If it has none, they are made for the blocks of `inode`.
    ///
    /// Context: may sleep; does not fail.
    ///
    /// C counterpart: `folio_create_buffers()`.
    ///
    /// # Safety
    ///
    /// If `folio` has private data, that must be buffers. `folio` must belong to the page cache of
    /// `inode`.
    #[inline]
    pub unsafe fn of_or_create(folio: &'a LockedFolio, inode: &Inode) -> Self {
        // SAFETY: The caller promises buffers or nothing, and a page cache, in which the lock keeps
        // the folio. New buffers form the folio's ring.
        unsafe {
            let mut head = bindings::folio_buffers(folio.as_raw());
            if head.is_null() {
                head = bindings::create_empty_buffers(folio.as_raw(), inode.block_size(), 0);
            }
            Self::from_raw(folio, head)
        }
    }

    /// The size of the folio, in bytes.
    #[inline]
    pub fn folio_size(&self) -> usize {
        self.folio_size
    }

    /// The offset in the folio of the byte at `pos` of its file, in bytes.
    ///
    /// C counterpart: `offset_in_folio()`.
    #[inline]
    pub fn offset_of(&self, pos: i64) -> usize {
        // A folio's size is a power of two, and its position in the file a multiple of it. The size
        // fits in 32 bits, so no sum of an offset and a 32-bit length wraps.
        (pos as u32 & (self.folio_size as u32).wrapping_sub(1)) as usize
    }

    /// The logarithm of a block's size in bytes, to base two.
    #[inline]
    pub fn block_bits(&self) -> u32 {
        self.block_bits
    }

    /// How many blocks, and so buffers, the folio has.
    #[inline]
    pub fn blocks(&self) -> usize {
        self.folio_size.wrapping_shr(self.block_bits)
    }
}

impl<'a> buffer_walk::Ring for BufferRing<'a> {
    type Buffer = &'a BufferHead;

    /// Walks over the buffers of these blocks, one full turn at most. Blocks beyond the folio are
    /// omitted. The walk follows the ring to the first block, and does nothing to the buffers
    /// before it.
    #[inline]
    fn buffers(&self, blocks: Range<usize>) -> impl Iterator<Item = &'a BufferHead> {
        let mut at = self.head;
        let left = blocks.end.min(self.blocks()).saturating_sub(blocks.start);
        if left > 0 {
            for _ in 0..blocks.start {
                at = at.next();
            }
        }
        (0..left).map(move |_| {
            let buffer = at;
            at = buffer.next();
            buffer
        })
    }
}
