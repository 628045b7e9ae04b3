// SPDX-License-Identifier: GPL-2.0

//! Entry points of the buffer walks. `fs/buffer.c` and file systems call them.

use kernel::{
    bindings,
    buffer_head::{
        BufferHead,
        BufferRing, //
    },
    error::code::{
        EINVAL,
        EIO, //
    },
    ffi::{
        c_int,
        c_uint,
        c_void, //
    },
    folio::LockedFolio,
    fs::Inode,
    prelude::*,
    warn_on,
    writeback::{
        block_range::BlockRange,
        buffer_walk::{
            begin,
            commit,
            is_ready,
            Buffer,
            FileSystem, //
        }, //
    }, //
};

/// The bytes `from..to` of the folio that has the buffers `ring`. An invalid range triggers a
/// warning.
#[inline]
fn range_of(ring: &BufferRing<'_>, from: usize, to: usize) -> Option<BlockRange> {
    let range = BlockRange::new(ring.folio_size(), ring.block_bits(), from, to);
    warn_on!(range.is_none());
    range
}

/// Like [`range_of`], but ends the range at the end of the folio: copied data must not be lost.
#[inline]
fn range_within(ring: &BufferRing<'_>, from: usize, to: usize) -> Option<BlockRange> {
    let end = ring.folio_size();
    range_of(ring, from, to).or_else(|| range_of(ring, from, end).filter(|_| to > end))
}

/// The `len` bytes at `pos` of the file, in the folio that has the buffers `ring`.
#[inline]
fn range_at(ring: &BufferRing<'_>, pos: bindings::loff_t, len: c_uint) -> Option<BlockRange> {
    let from = ring.offset_of(pos);
    range_of(ring, from, from.wrapping_add(len as usize))
}

/// Marks the bytes `from..to` of `folio`, which the caller has copied, up to date and dirty.
///
/// Does nothing for a folio without buffers. An invalid range triggers a warning. If the range ends
/// beyond the folio, the part inside the folio is committed.
///
/// # Safety
///
/// `folio` must point at a folio that the caller has locked, in a page cache whose folios have
/// buffers or no private data.
#[export]
pub unsafe extern "C" fn buffer_walk_commit(folio: *mut bindings::folio, from: usize, to: usize) {
    // SAFETY: The caller promises the lock.
    let folio = unsafe { LockedFolio::assume_locked(folio) };
    // SAFETY: The caller promises buffers or no private data.
    let Some(ring) = (unsafe { BufferRing::of(folio) }) else {
        return;
    };
    let Some(range) = range_within(&ring, from, to) else {
        return;
    };
    if commit(&ring, &range, folio.test_uptodate()) {
        folio.mark_uptodate();
    }
}

/// Prepares the buffers of `folio` for a write of `len` bytes at `pos` of its file. Creates the
/// buffers if the folio has none. The file system's `ops` map and read them.
///
/// Returns zero or a negative error number. An invalid range triggers a warning and gives `EINVAL`.
///
/// # Safety
///
/// - `folio` must point at a folio that the caller has locked, in the page cache of an inode whose
///   folios have buffers or no private data;
/// - `ops` must point at valid operations of that inode's file system that take `get_block` and
///   `private`.
#[export]
pub unsafe extern "C" fn buffer_walk_begin(
    folio: *mut bindings::folio,
    pos: bindings::loff_t,
    len: c_uint,
    get_block: bindings::get_block_t,
    private: *mut c_void,
    ops: *const bindings::buffer_walk_ops,
) -> c_int {
    // SAFETY: The caller promises the lock.
    let folio = unsafe { LockedFolio::assume_locked(folio) };
    // SAFETY: The caller promises buffers or no private data.
    if let Some(ring) = unsafe { BufferRing::of(folio) } {
        // Often no buffer needs work.
        match range_at(&ring, pos, len) {
            Some(range) if is_ready(&ring, &range) => return 0,
            Some(_) => {}
            None => return EINVAL.to_errno(),
        }
    }
    // SAFETY: The caller promises the same.
    unsafe { prepare(folio, pos, len, get_block, private, ops) }
}

/// Prepares a folio whose buffers need work. Not inlined, to keep the common case short.
///
/// # Safety
///
/// As [`buffer_walk_begin`].
#[inline(never)]
unsafe fn prepare(
    folio: &LockedFolio,
    pos: bindings::loff_t,
    len: c_uint,
    get_block: bindings::get_block_t,
    private: *mut c_void,
    ops: *const bindings::buffer_walk_ops,
) -> c_int {
    // An unlocked folio triggers a warning, where C stops with BUG_ON(). The check is omitted where
    // no buffer needs work.
    let Some(mapping) = folio.mapping().filter(|_| folio.test_locked()) else {
        warn_on!(true);
        return EINVAL.to_errno();
    };
    let inode = mapping.host();
    // SAFETY: The folio is in the page cache of `inode`, and the caller promises buffers or no
    // private data.
    let ring = unsafe { BufferRing::of_or_create(folio, inode) };
    let Some(range) = range_at(&ring, pos, len) else {
        return EINVAL.to_errno();
    };
    // INVARIANT: The caller promises the operations, and `inode` owns the folio's page cache.
    let fs = WriteBegin {
        folio,
        inode,
        range: &range,
        first: (folio.pos() as u64).wrapping_shr(ring.block_bits()),
        get_block,
        private,
        // SAFETY: The caller promises valid operations.
        ops: unsafe { &*ops },
    };
    match begin(&ring, &range, folio.test_uptodate(), &fs) {
        Ok(()) => 0,
        Err(error) => error,
    }
}

/// One write, with the operations of its file system.
///
/// # Invariants
///
/// - `folio` is locked and in the page cache of `inode`;
/// - `ops` and its functions are valid for `inode`, and accept `get_block` and `private`.
struct WriteBegin<'a> {
    folio: &'a LockedFolio,
    inode: &'a Inode,
    range: &'a BlockRange,
    /// The block of the file at which the folio begins.
    first: u64,
    get_block: bindings::get_block_t,
    private: *mut c_void,
    ops: &'a bindings::buffer_walk_ops,
}

impl FileSystem<&BufferHead> for WriteBegin<'_> {
    /// A negative error number, as the C functions return it.
    type Error = c_int;

    #[inline]
    fn found_new(&self) {
        warn_of_new(self.ops.keeps_new);
    }

    #[inline]
    fn map(&self, buffer: &BufferHead, block: usize) -> Result<(), c_int> {
        let (inode, place) = (self.inode.as_raw(), self.first.wrapping_add(block as u64));
        // SAFETY: By the type invariants either function accepts these arguments. The buffer
        // belongs to the locked folio.
        let error = unsafe {
            match (self.ops.map, self.get_block) {
                (Some(map), _) => map(inode, place, buffer.as_raw(), self.get_block, self.private),
                (None, Some(get_block)) => get_block(inode, place, buffer.as_raw(), 1),
                (None, None) => EIO.to_errno(),
            }
        };
        match error {
            0 => Ok(()),
            _ => Err(error),
        }
    }

    #[inline]
    fn new_in_uptodate(&self, buffer: &BufferHead) {
        if self.ops.keeps_new {
            buffer.set_uptodate();
        } else {
            buffer.clear_new();
            buffer.set_uptodate();
            buffer.mark_dirty();
        }
    }

    #[inline]
    fn zero_outside(&self, block: usize) {
        self.folio
            .zero_outside(self.range.bytes(block), self.range.from()..self.range.to());
    }

    #[inline]
    fn read(&self, buffer: &BufferHead) {
        if let Some(read) = self.ops.read {
            // SAFETY: By the type invariants the function is valid, and the buffer is mapped.
            unsafe { read(buffer.as_raw()) };
        }
    }

    #[inline]
    fn read_error(&self) -> c_int {
        EIO.to_errno()
    }

    #[inline]
    fn abort(&self) {
        if let Some(abort) = self.ops.abort {
            let (from, to) = (self.range.from(), self.range.to());
            // SAFETY: By the type invariants the folio is locked and has a page cache, and the
            // function accepts these arguments.
            unsafe { abort(self.folio.as_raw(), from, to, self.private) };
        }
    }
}

/// Warns of a buffer that is new before the walk, if the file system has `keeps_new`: such a file
/// system must not leave a buffer new.
#[cold]
#[inline(never)]
fn warn_of_new(keeps_new: bool) {
    warn_on!(keeps_new);
}
