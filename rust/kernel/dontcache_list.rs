// SPDX-License-Identifier: GPL-2.0

//! Two flags of an inode's page cache record whether it belongs into a wb's `b_dontcache`:
//!
//! | flag | meaning |
//! | --- | --- |
//! | `AS_DONTCACHE_DIRTY` | it may have dirty dropbehind folios |
//! | `AS_DONTCACHE_LISTED` | ... and its inode is in `b_dontcache`, or will be |
//!
//! The first flag is set with the first such folio and cleared by a search that finds none. If the
//! second flag is set, the inode is in the list or queued, or the context that works on it will put
//! it there.
//!
//! The flusher owns the list: see [`crate::flusher`].

use crate::{
    bindings,
    dontcache::DONTCACHE_DIRTY,
    ffi::c_ulong,
    folio::Folio,
    fs::{
        AddressSpace,
        PagesGuard, //
    },
};
use core::mem::MaybeUninit;

/// `PAGECACHE_TAG_DIRTY`, a C macro with a cast, which bindgen does not translate.
const TAG_DIRTY: bindings::xa_mark_t = 0;

const DONTCACHE_LISTED: c_ulong = 1 << bindings::mapping_flags_AS_DONTCACHE_LISTED;

impl AddressSpace {
    /// Records that the flusher finds the dirty dropbehind folios (`AS_DONTCACHE_LISTED`): see
    /// [`crate::flusher`]. Requires the lock of the wb's lists.
    #[inline]
    pub(crate) fn mark_dontcache_listed(&self) {
        self.set_flag(DONTCACHE_LISTED);
    }

    /// Whether there are dirty dropbehind folios that the flusher would not find.
    #[inline]
    pub fn is_dontcache_unlisted(&self) -> bool {
        self.raw_flags() & (DONTCACHE_DIRTY | DONTCACHE_LISTED) == DONTCACHE_DIRTY
    }

    /// Searches at most `looks` dirty folios for a dirty dropbehind folio. Returns whether there is
    /// one or there may be one. Otherwise clears both flags.
    ///
    /// Context: any; under the lock of the wb's lists. Takes the lock of the folios.
    pub(crate) fn look_for_dontcache_dirty(&self, looks: usize) -> bool {
        if !self.may_have_dontcache_dirty() {
            return false;
        }
        let pages = self.lock_pages();
        let may_have = pages.find_dontcache_dirty(looks);
        if !may_have {
            // A writer that makes such a folio dirty sets the flag again, under the lock held here.
            self.clear_flag(DONTCACHE_DIRTY);
            self.clear_flag(DONTCACHE_LISTED);
        }
        may_have
    }

    fn clear_flag(&self, flag: c_ulong) {
        // SAFETY: The page cache is live by the type invariants; its flags are changed atomically.
        unsafe {
            bindings::test_and_clear_bit(
                flag.trailing_zeros() as usize,
                &raw mut (*self.as_raw()).flags,
            )
        };
    }
}

impl PagesGuard<'_> {
    /// Whether one of the first `looks` dirty folios is dropbehind, or there are more.
    fn find_dontcache_dirty(&self, looks: usize) -> bool {
        let mut cursor = MaybeUninit::uninit();
        // SAFETY: The page cache is live by its type invariants. C fills the cursor.
        let cursor = unsafe {
            bindings::mapping_xas_init(self.mapping().as_raw(), cursor.as_mut_ptr());
            cursor.assume_init_mut()
        };
        for _ in 0..looks {
            // SAFETY: The lock is held, so the index does not change during the walk.
            let entry = unsafe { bindings::xas_find_marked(cursor, c_ulong::MAX, TAG_DIRTY) };
            if entry.is_null() {
                return false;
            }
            // With DAX an entry is a value, not a folio: its lowest bit is set.
            if entry.addr() & 1 == 0
                // SAFETY: The page cache has a reference on the folio, and keeps it while the lock
                // is held.
                && unsafe { Folio::from_raw(entry.cast()) }.is_dontcache_dirty()
            {
                return true;
            }
        }
        true
    }
}
