// SPDX-License-Identifier: GPL-2.0

//! What a file system in C does while the buffers of a folio are prepared for a write.
//!
//! C header: [`include/linux/rust_buffer_walk.h`](srctree/include/linux/rust_buffer_walk.h)

use crate::{
    bindings,
    buffer_head::BufferHead,
    error::{
        code::EIO,
        to_result,
        Error,
        Result, //
    },
    ffi::c_void,
    folio::LockedFolio,
    writeback::{
        block_range::BlockRange,
        buffer_walk::FileSystem, //
    }, //
};

/// One write, as its file system takes part in it.
///
/// # Invariants
///
/// - `folio` is locked and in the page cache of an inode of the file system;
/// - `ops` and its functions are valid, and take `get_block` and `private`.
pub struct WriteBegin<'a> {
    folio: &'a LockedFolio,
    range: &'a BlockRange,
    get_block: bindings::get_block_t,
    private: *mut c_void,
    ops: &'a bindings::rust_write_begin_ops,
}

impl<'a> WriteBegin<'a> {
    /// The write of `range` in `folio`.
    ///
    /// # Safety
    ///
    /// `ops` must point at operations of the file system that `folio` belongs to the page cache of
    /// an inode of. They must be valid for `get_block` and `private`, for the whole of `'a`.
    #[inline(always)]
    pub unsafe fn new(
        folio: &'a LockedFolio,
        range: &'a BlockRange,
        get_block: bindings::get_block_t,
        private: *mut c_void,
        ops: *const bindings::rust_write_begin_ops,
    ) -> Self {
        // INVARIANT: All of it is what the caller promises.
        Self {
            folio,
            range,
            get_block,
            private,
            // SAFETY: The caller promises valid operations for `'a`.
            ops: unsafe { &*ops },
        }
    }
}

impl FileSystem<&BufferHead> for WriteBegin<'_> {
    type Error = Error;

    fn found_new(&self, buffer: &BufferHead) {
        if let Some(found_new) = self.ops.found_new {
            // SAFETY: By the type invariants the function is valid, and the buffer lives.
            unsafe { found_new(buffer.as_raw()) };
        }
    }

    fn map(&self, buffer: &BufferHead, block: usize) -> Result {
        let first = (self.folio.pos() as u64).wrapping_shr(self.range.block_bits());
        let Some(map) = self.ops.map else {
            return Err(EIO);
        };
        // SAFETY: By the type invariants the folio is locked and has a page cache, and the function
        // takes these arguments; the buffer belongs to the folio.
        to_result(unsafe {
            map(
                self.folio.as_raw(),
                buffer.as_raw(),
                first.wrapping_add(block as u64),
                self.get_block,
                self.private,
            )
        })
    }

    fn new_in_uptodate(&self, buffer: &BufferHead) {
        if self.ops.keeps_new {
            buffer.set_uptodate();
        } else {
            buffer.clear_new();
            buffer.set_uptodate();
            buffer.mark_dirty();
        }
    }

    fn zero_outside(&self, block: usize) {
        self.folio
            .zero_outside(self.range.bytes(block), self.range.from()..self.range.to());
    }

    fn read(&self, buffer: &BufferHead) {
        if let Some(read) = self.ops.read {
            // SAFETY: By the type invariants the function is valid, and the buffer is mapped.
            unsafe { read(buffer.as_raw()) };
        }
    }

    fn read_error(&self) -> Error {
        EIO
    }

    fn abort(&self) {
        if let Some(abort) = self.ops.abort {
            let (from, to) = (self.range.from(), self.range.to());
            // SAFETY: By the type invariants the folio is locked and has a page cache, and the
            // function takes these arguments.
            unsafe { abort(self.folio.as_raw(), from, to, self.private) };
        }
    }
}
