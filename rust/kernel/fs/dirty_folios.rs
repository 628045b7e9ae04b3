// SPDX-License-Identifier: GPL-2.0

//! The dirty folios of a page cache.
//!
//! C header: [`include/linux/xarray.h`](srctree/include/linux/xarray.h)

use crate::{
    bindings,
    ffi::c_ulong,
    folio::Folio,
    fs::{
        AddressSpace,
        PagesGuard, //
    }, //
};
use core::{
    marker::PhantomData,
    ptr, //
};

/// `PAGECACHE_TAG_DIRTY`, which is a cast to bindgen.
const TAG_DIRTY: bindings::xa_mark_t = 0;

impl AddressSpace {
    /// How many dirty pages it has; no more folios are counted than have `most` pages. May change
    /// at any time.
    ///
    /// Context: as for [`lock_pages`](Self::lock_pages), which it calls.
    pub fn nr_dirty_pages(&self, most: i64) -> i64 {
        let guard = self.lock_pages();
        let mut pages = 0;
        // A folio is split under this lock.
        for folio in guard.dirty_folios() {
            pages += folio.nr_pages() as i64;
            if pages >= most {
                break;
            }
        }
        pages
    }
}

impl PagesGuard<'_> {
    /// The folios that are dirty, from the first of the file.
    ///
    /// C counterpart: `xas_for_each_marked()`, with `PAGECACHE_TAG_DIRTY`.
    #[inline]
    pub(crate) fn dirty_folios(&self) -> DirtyFolios<'_> {
        // INVARIANT: The lock is held while it is borrowed. The walk begins at the root.
        DirtyFolios {
            cursor: bindings::xa_state {
                // SAFETY: The page cache is live by its type invariants, so its field can be named.
                xa: unsafe { &raw mut (*self.mapping().as_raw()).i_pages },
                // What XA_STATE() says of the root. A pointer that is only compared.
                xa_node: ptr::without_provenance_mut(3),
                ..Default::default()
            },
            _lock: PhantomData,
        }
    }
}

/// The walk over the dirty folios of a page cache.
///
/// # Invariants
///
/// `cursor` walks the folios of a page cache whose lock is held for `'a`.
pub(crate) struct DirtyFolios<'a> {
    cursor: bindings::xa_state,
    _lock: PhantomData<&'a PagesGuard<'a>>,
}

impl<'a> Iterator for DirtyFolios<'a> {
    type Item = &'a Folio;

    #[inline]
    fn next(&mut self) -> Option<&'a Folio> {
        loop {
            // SAFETY: By the type invariants the lock is held, so that the index does not change
            // during the walk.
            let entry =
                unsafe { bindings::xas_find_marked(&mut self.cursor, c_ulong::MAX, TAG_DIRTY) };
            if entry.is_null() {
                return None;
            }
            // With DAX an entry is a value and no folio: it has the lowest bit set.
            if entry.addr() & 1 == 0 {
                // SAFETY: The page cache has a reference on the folio, which it keeps while its
                // lock is held, by the type invariants for `'a`.
                return Some(unsafe { Folio::from_raw(entry.cast()) });
            }
        }
    }
}
