// SPDX-License-Identifier: GPL-2.0

//! Calls a file system in C while the buffers of a folio are prepared for a write.
//!
//! C header: [`include/linux/rust_writeback.h`](srctree/include/linux/rust_writeback.h)

use crate::{
    bindings,
    buffer_head::BufferHead,
    error::code::EIO,
    ffi::{
        c_int,
        c_void, //
    },
    folio::LockedFolio,
    fs::Inode,
    warn_on,
    writeback::{
        block_range::BlockRange,
        buffer_walk::{
            Buffer,
            FileSystem, //
        }, //
    }, //
};

/// One write, with the operations of its file system.
///
/// # Invariants
///
/// - `folio` is locked and in the page cache of `inode`;
/// - `ops` and its functions are valid for `inode`, and accept `get_block` and `private`.
pub struct WriteBegin<'a> {
    folio: &'a LockedFolio,
    inode: &'a Inode,
    range: &'a BlockRange,
    first: u64,
    get_block: bindings::get_block_t,
    private: *mut c_void,
    ops: &'a bindings::buffer_walk_ops,
}

impl<'a> WriteBegin<'a> {
    /// The write of `range` in `folio`, whose blocks have `1 << block_bits` bytes.
    ///
    /// # Safety
    ///
    /// `folio` must be in the page cache of `inode`. `ops` must point at operations of its file
    /// system. They must be valid for `get_block` and `private`, for the whole of `'a`.
    #[inline(always)]
    pub unsafe fn new(
        folio: &'a LockedFolio,
        inode: &'a Inode,
        range: &'a BlockRange,
        block_bits: u32,
        get_block: bindings::get_block_t,
        private: *mut c_void,
        ops: *const bindings::buffer_walk_ops,
    ) -> Self {
        // INVARIANT: The caller promises all of it.
        Self {
            folio,
            inode,
            range,
            first: (folio.pos() as u64).wrapping_shr(block_bits),
            get_block,
            private,
            // SAFETY: The caller promises valid operations for `'a`.
            ops: unsafe { &*ops },
        }
    }
}

impl FileSystem<&BufferHead> for WriteBegin<'_> {
    /// A negative error number, as the C functions return it.
    type Error = c_int;

    #[inline(always)]
    fn found_new(&self) {
        warn_of_new(self.ops.keeps_new);
    }

    #[inline(always)]
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
        if error == 0 {
            Ok(())
        } else {
            Err(error)
        }
    }

    #[inline(always)]
    fn new_in_uptodate(&self, buffer: &BufferHead) {
        if self.ops.keeps_new {
            buffer.set_uptodate();
        } else {
            buffer.clear_new();
            buffer.set_uptodate();
            buffer.mark_dirty();
        }
    }

    #[inline(always)]
    fn zero_outside(&self, block: usize) {
        self.folio
            .zero_outside(self.range.bytes(block), self.range.from()..self.range.to());
    }

    #[inline(always)]
    fn read(&self, buffer: &BufferHead) {
        if let Some(read) = self.ops.read {
            // SAFETY: By the type invariants the function is valid, and the buffer is mapped.
            unsafe { read(buffer.as_raw()) };
        }
    }

    #[inline(always)]
    fn read_error(&self) -> c_int {
        EIO.to_errno()
    }

    #[inline(always)]
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
