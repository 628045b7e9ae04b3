// SPDX-License-Identifier: GPL-2.0

//! When a folio counts as dirty and dropbehind.
//!
//! Each `bdi_writeback` counts the pages of its dirty dropbehind folios. A folio counts while both
//! of its flags are set; the counter has to follow every change of either flag:
//!
//! | change | C counterpart | counter |
//! | --- | --- | --- |
//! | a dropbehind folio becomes dirty | `folio_account_dirtied()` | + pages |
//! | a dirty dropbehind folio is cleaned for I/O | `folio_clear_dirty_for_io()` | - pages |
//! | ... or its dirty data is cancelled or truncated | `folio_account_cleaned()` | - pages |
//! | an ordinary lookup takes dropbehind from a dirty folio | `__filemap_get_folio()` | - pages |
//! | the inode of a counted folio gets another wb | `inode_do_switch_wbs()` | - old, + new |

/// The two flags of a folio that decide whether it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FolioState {
    /// The folio has data that its device does not have (`PG_dirty`).
    pub dirty: bool,
    /// The folio is to leave the page cache once it is clean (`PG_dropbehind`).
    pub dropbehind: bool,
}

/// An event in the life of a folio, as far as the counter is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Data was written into the folio: `folio_mark_dirty()`.
    Dirty,
    /// The folio's dirty flag goes: for I/O, or because its data is cancelled or truncated.
    Clean,
    /// A lookup that did not ask for dropbehind found the folio: it is to stay in the cache.
    Claim,
}

impl FolioState {
    /// A folio that a `RWF_DONTCACHE` write brought into the page cache, before it is dirtied.
    pub const DROPBEHIND: Self = Self {
        dirty: false,
        dropbehind: true,
    };

    /// Whether the pages of a folio in this state are counted.
    #[inline]
    pub const fn counts(self) -> bool {
        self.dirty && self.dropbehind
    }

    /// The state that follows from `event`.
    #[inline]
    pub const fn after(self, event: Event) -> Self {
        match event {
            Event::Dirty => Self {
                dirty: true,
                ..self
            },
            Event::Clean => Self {
                dirty: false,
                ..self
            },
            Event::Claim => Self {
                dropbehind: false,
                ..self
            },
        }
    }

    /// What `event` adds to the counter, for a folio of `pages` pages in this state.
    ///
    /// Never panics: a folio has far fewer pages than would overflow, and the arithmetic wraps.
    #[inline]
    pub const fn change(self, event: Event, pages: i64) -> i64 {
        match (self.counts(), self.after(event).counts()) {
            (false, true) => pages,
            (true, false) => pages.wrapping_neg(),
            _ => 0,
        }
    }
}

/// What the counter of the wb that a counted folio leaves, and that of the wb that it joins, change
/// by when the folio's inode moves from the one to the other: nothing is lost on the way.
#[inline]
pub const fn moved(pages: i64) -> (i64, i64) {
    (pages.wrapping_neg(), pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATES: [FolioState; 4] = [
        FolioState {
            dirty: false,
            dropbehind: false,
        },
        FolioState {
            dirty: false,
            dropbehind: true,
        },
        FolioState {
            dirty: true,
            dropbehind: false,
        },
        FolioState {
            dirty: true,
            dropbehind: true,
        },
    ];

    #[test]
    fn only_dirty_and_dropbehind_counts() {
        assert_eq!(STATES.map(FolioState::counts), [false, false, false, true]);
    }

    #[test]
    fn each_change_of_a_counted_folio() {
        let clean = FolioState::DROPBEHIND;
        let dirty = clean.after(Event::Dirty);
        assert_eq!(clean.change(Event::Dirty, 512), 512);
        assert_eq!(dirty.change(Event::Clean, 512), -512);
        assert_eq!(dirty.change(Event::Claim, 512), -512);
    }

    #[test]
    fn what_changes_nothing_is_not_counted() {
        let buffered = STATES[0];
        assert_eq!(buffered.change(Event::Dirty, 1), 0);
        assert_eq!(buffered.after(Event::Dirty).change(Event::Clean, 1), 0);
        // Dirtied again, claimed while clean, cleaned after it was claimed.
        let dirty = FolioState::DROPBEHIND.after(Event::Dirty);
        assert_eq!(dirty.change(Event::Dirty, 1), 0);
        assert_eq!(FolioState::DROPBEHIND.change(Event::Claim, 1), 0);
        assert_eq!(dirty.after(Event::Claim).change(Event::Clean, 1), 0);
    }

    #[test]
    fn a_move_keeps_the_sum() {
        let (old, new) = moved(16);
        assert_eq!((old, new), (-16, 16));
    }

    #[test]
    fn no_page_count_panics() {
        for pages in [i64::MIN, i64::MAX, 0] {
            for state in STATES {
                for event in [Event::Dirty, Event::Clean, Event::Claim] {
                    let _ = state.change(event, pages);
                }
            }
            let _ = moved(pages);
        }
    }
}
