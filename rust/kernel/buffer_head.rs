// SPDX-License-Identifier: GPL-2.0

//! Buffers: the blocks of a folio, one by one.
//!
//! A file system with buffers keeps a `buffer_head` for each block of a folio: where the block is
//! on the device, and what state it is in. They form a ring that hangs off the folio, and the
//! folio's lock keeps them there. So everything here borrows from a [`LockedFolio`]:
//!
//! | type | what it is | ends with |
//! | --- | --- | --- |
//! | [`BufferRing`] | all buffers of a folio | the folio's lock |
//! | [`BufferCursor`] | a walk over some of them, one full turn at most | the folio's lock |
//! | [`&BufferHead`](BufferHead) | one of them | the folio's lock |
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
    writeback::{
        buffer_index::{
            index,
            index_len,
            seek,
            Link, //
        },
        buffer_walk, //
    }, //
};
use core::{
    num::NonZeroUsize,
    ops::Range,
    ptr::{
        null,
        NonNull, //
    },
    slice, //
};

const UPTODATE: usize = 1 << bindings::bh_state_bits_BH_Uptodate;
const MAPPED: usize = 1 << bindings::bh_state_bits_BH_Mapped;
const NEW: usize = 1 << bindings::bh_state_bits_BH_New;
const DELAY: usize = 1 << bindings::bh_state_bits_BH_Delay;
const UNWRITTEN: usize = 1 << bindings::bh_state_bits_BH_Unwritten;

/// The state of a block of a folio (`struct buffer_head`).
///
/// Flags are read one by one and without order, unless said otherwise. I/O on the buffer changes
/// some of them at any time; the others change under the folio's lock.
///
/// # Invariants
///
/// Instances belong to the ring of a folio whose lock is held by the current context for as long
/// as a reference to them exists, or are new and known to that context alone. (The ring of a locked
/// folio is neither freed nor linked anew: `try_to_free_buffers()` wants the lock.) The size of the
/// block is a power of two and at least a sector: C makes no other buffers.
#[repr(transparent)]
pub struct BufferHead(Opaque<bindings::buffer_head>);

impl BufferHead {
    /// Makes a reference of a pointer that C hands over.
    ///
    /// # Safety
    ///
    /// `ptr` must point at a buffer in the ring of a folio whose lock the current context holds
    /// for the whole of `'a`, or at a new one that nobody else knows for that long.
    #[inline]
    pub unsafe fn from_raw<'a>(ptr: *mut bindings::buffer_head) -> &'a Self {
        // INVARIANT: The caller promises it.
        // SAFETY: By that promise the buffer lives for `'a`; `Self` is transparent over it.
        unsafe { &*ptr.cast() }
    }

    /// The pointer that C knows the buffer by.
    #[inline]
    pub fn as_raw(&self) -> *mut bindings::buffer_head {
        self.0.get()
    }

    /// The size of its block, in bytes.
    ///
    /// C counterpart: `bh->b_size`.
    #[inline]
    pub fn size(&self) -> usize {
        // SAFETY: The buffer lives by the type invariants; its size changes under the lock alone.
        unsafe { (*self.as_raw()).b_size }
    }

    /// The logarithm of the size of its block, to base two.
    #[inline(always)]
    fn block_bits(&self) -> u32 {
        // SAFETY: A block is a sector at least.
        unsafe { NonZeroUsize::new_unchecked(self.size()) }.trailing_zeros()
    }

    /// The flags at the moment.
    #[inline(always)]
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

/// A buffer as a link of its ring. Private, for it can be followed without end.
#[derive(Clone, Copy)]
#[repr(transparent)]
struct BufferLink<'a>(&'a BufferHead);

impl Link for BufferLink<'_> {
    #[inline(always)]
    fn next(self) -> Self {
        // SAFETY: The ring is whole by the type invariants: the next buffer belongs to it as well.
        Self(unsafe { BufferHead::from_raw((*self.0.as_raw()).b_this_page) })
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
    /// Makes a ring of the pointer to its first buffer.
    ///
    /// # Safety
    ///
    /// `head` must point at the first buffer of a ring that is whole and belongs to `folio`.
    #[inline(always)]
    pub unsafe fn from_raw(folio: &'a LockedFolio, head: *mut bindings::buffer_head) -> Self {
        // SAFETY: The caller promises the ring, and `folio` is locked for `'a`.
        let head = unsafe { BufferHead::from_raw(head) };
        // INVARIANT: The same; and C makes no other rings than of one buffer a block.
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
    /// What `folio` has as private data, if it has any, must be buffers.
    #[inline(always)]
    pub unsafe fn of(folio: &'a LockedFolio) -> Option<Self> {
        // SAFETY: A locked folio is live.
        let head = NonNull::new(unsafe { bindings::folio_buffers(folio.as_raw()) })?;
        // SAFETY: The caller promises that these are buffers, and attached they are a ring.
        Some(unsafe { Self::from_raw(folio, head.as_ptr()) })
    }

    /// The buffers of `folio`, made for the blocks of `inode` if there are none.
    ///
    /// Context: may sleep; does not fail.
    ///
    /// C counterpart: `folio_create_buffers()`.
    ///
    /// # Safety
    ///
    /// What `folio` has as private data, if it has any, must be buffers, and `folio` must belong
    /// to the page cache of `inode`.
    #[inline(always)]
    pub unsafe fn of_or_create(folio: &'a LockedFolio, inode: &Inode) -> Self {
        // SAFETY: The caller promises buffers or nothing, and a page cache, in which the lock keeps
        // the folio. New buffers are its ring.
        unsafe {
            let mut head = bindings::folio_buffers(folio.as_raw());
            if head.is_null() {
                head = bindings::create_empty_buffers(folio.as_raw(), inode.block_size(), 0);
            }
            Self::from_raw(folio, head)
        }
    }

    /// The size of the folio, in bytes.
    #[inline(always)]
    pub fn folio_size(&self) -> usize {
        self.folio_size
    }

    /// How far into the folio the byte at `pos` of its file is, in bytes.
    ///
    /// C counterpart: `offset_in_folio()`.
    #[inline(always)]
    pub fn offset_of(&self, pos: i64) -> usize {
        // A folio's size is a power of two, and its place in the file a multiple of it. In 32 bits,
        // which a folio fits in, no sum of it and a length wraps.
        (pos as u32 & (self.folio_size as u32).wrapping_sub(1)) as usize
    }

    /// The logarithm of a block's size in bytes, to base two.
    #[inline(always)]
    pub fn block_bits(&self) -> u32 {
        self.block_bits
    }

    /// How many blocks the folio has, and buffers for them.
    #[inline(always)]
    pub fn blocks(&self) -> usize {
        self.folio_size.wrapping_shr(self.block_bits)
    }

    /// A walk over the buffers of these blocks. Blocks that the folio does not have are left out.
    #[inline(always)]
    pub fn cursor(&self, blocks: Range<usize>) -> BufferCursor<'a> {
        let head = BufferLink(self.head);
        // INVARIANT: Either way `left` is at most the number of blocks.
        match blocks.end.min(self.blocks()).checked_sub(blocks.start) {
            Some(left) if left > 0 => BufferCursor {
                at: seek(head, self.links(), blocks.start),
                left,
            },
            _ => BufferCursor { at: head, left: 0 },
        }
    }

    /// The links of the index: none if there is no index.
    #[inline(always)]
    fn links(&self) -> &'a [BufferLink<'a>] {
        // SAFETY: The buffer lives by the type invariants. Its index is set once, while nobody else
        // knows the buffers, and freed with it.
        let Some(index) = NonNull::new(unsafe { (*self.head.as_raw()).b_index }) else {
            return &[];
        };
        // SAFETY: `index_buffers()` wrote the number of links in front of the links, which are
        // pointers to buffers of this ring, and `BufferLink` is transparent over one.
        unsafe {
            let links = index.as_ptr().add(1).cast::<BufferLink<'a>>();
            slice::from_raw_parts(links, index.read())
        }
    }
}

/// Indexes the new buffers of a folio, so that [`BufferRing::cursor`] need not visit those that it
/// leaves out. Visits each once. Does nothing for a few buffers, or where there is no memory for an
/// index.
///
/// The index is how many links it has, and the links.
///
/// Context: that of the allocation of the buffers.
///
/// # Safety
///
/// `head` must point at the first of as many linked buffers as the folio has blocks of their size,
/// which nobody else knows. `gfp` must be what they were allocated with.
pub unsafe fn index_buffers(
    head: NonNull<bindings::buffer_head>,
    folio_size: usize,
    gfp: bindings::gfp_t,
) {
    // SAFETY: Nobody else knows the buffers, and that is as good as their folio's lock.
    let first = unsafe { BufferHead::from_raw(head.as_ptr()) };
    let blocks = folio_size.wrapping_shr(first.block_bits());
    let len = index_len(blocks);
    if len == 0 {
        return;
    }
    let Some(memory) = index_memory(len.saturating_add(1), gfp) else {
        return;
    };
    // The last link is followed by nothing yet: the index ends before it.
    for (place, link) in (1..).zip(index(BufferLink(first), blocks)) {
        // SAFETY: The memory has room for `len` links, which are no more, and one word in front.
        unsafe { memory.add(place).cast::<BufferLink<'_>>().write(link) };
    }
    // SAFETY: The same; and nobody else knows the buffers. C frees the memory with the first one.
    unsafe {
        memory.write(len);
        (*head.as_ptr()).b_index = memory.as_ptr();
    }
}

/// Memory of so many words, which is for `kfree()`, and cannot be moved. It is not needed so badly
/// that anybody should be told where there is none, or reclaim more than once.
fn index_memory(words: usize, gfp: bindings::gfp_t) -> Option<NonNull<usize>> {
    const NOT: u32 = 1 << bindings::___GFP_NOFAIL_BIT | 1 << bindings::___GFP_MOVABLE_BIT;
    const TOO: u32 = 1 << bindings::___GFP_NORETRY_BIT | 1 << bindings::___GFP_NOWARN_BIT;
    // SAFETY: There is nothing to reallocate, and whoever allocates buffers may allocate this.
    let memory = unsafe {
        bindings::krealloc_node_align(
            null(),
            words.saturating_mul(size_of::<usize>()),
            align_of::<usize>(),
            gfp & !NOT | TOO,
            bindings::NUMA_NO_NODE,
        )
    };
    NonNull::new(memory.cast())
}

impl<'a> buffer_walk::Ring for BufferRing<'a> {
    type Buffer = &'a BufferHead;

    #[inline(always)]
    fn buffers(&self, blocks: Range<usize>) -> impl Iterator<Item = &'a BufferHead> {
        self.cursor(blocks)
    }
}

/// A walk over buffers of a locked folio: one full turn at most.
///
/// # Invariants
///
/// `left` is at most the number of buffers in the ring.
pub struct BufferCursor<'a> {
    at: BufferLink<'a>,
    left: usize,
}

impl<'a> Iterator for BufferCursor<'a> {
    type Item = &'a BufferHead;

    #[inline(always)]
    fn next(&mut self) -> Option<&'a BufferHead> {
        // INVARIANT: `left` only becomes less.
        self.left = self.left.checked_sub(1)?;
        let BufferLink(buffer) = self.at;
        self.at = self.at.next();
        Some(buffer)
    }
}
