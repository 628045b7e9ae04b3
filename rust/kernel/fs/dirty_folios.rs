// SPDX-License-Identifier: GPL-2.0

//! The dirty folios of a page cache.
//!
//! C header: [`include/linux/xarray.h`](srctree/include/linux/xarray.h)

use crate::{
    bindings,
    ffi::c_ulong,
    folio::Folio,
    fs::PagesGuard, //
};
use core::{
    marker::PhantomData,
    ptr, //
};

/// `PAGECACHE_TAG_DIRTY`, a C macro with a cast, which bindgen does not translate.
const TAG_DIRTY: bindings::xa_mark_t = 0;

impl PagesGuard<'_> {
    /// The dirty folios, from the beginning of the file.
    ///
    /// C counterpart: `xas_for_each_marked()`, with `PAGECACHE_TAG_DIRTY`.
    #[inline]
    pub(crate) fn dirty_folios(&self) -> DirtyFolios<'_> {
        // INVARIANT: The borrow keeps the lock held. The walk begins at the root.
        DirtyFolios {
            cursor: bindings::xa_state {
                // SAFETY: The page cache is live by its type invariants, so a pointer to its field
                // is valid.
                xa: unsafe { &raw mut (*self.mapping().as_raw()).i_pages },
                // The value of XA_STATE() for the root. It is only compared.
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
            // SAFETY: By the type invariants the lock is held, so the index does not change during
            // the walk.
            let entry =
                unsafe { bindings::xas_find_marked(&mut self.cursor, c_ulong::MAX, TAG_DIRTY) };
            if entry.is_null() {
                return None;
            }
            // With DAX an entry is a value, not a folio: its lowest bit is set.
            if entry.addr() & 1 == 0 {
                // SAFETY: The page cache has a reference on the folio, and keeps it while the lock
                // is held: by the type invariants for `'a`.
                return Some(unsafe { Folio::from_raw(entry.cast()) });
            }
        }
    }
}
