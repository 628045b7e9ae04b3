// SPDX-License-Identifier: GPL-2.0

//! Writeback of a page cache that somebody else than its flusher starts.
//!
//! C header: [`include/linux/pagemap.h`](srctree/include/linux/pagemap.h)

use crate::{
    bindings,
    ffi::c_long,
    fs::AddressSpace,
    page::PAGE_SHIFT,
    writeback::policy::{
        PageCache,
        Written, //
    }, //
};

impl AddressSpace {
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
