// SPDX-License-Identifier: GPL-2.0

//! When a folio counts as dirty and dropbehind.
//!
//! Each `bdi_writeback` counts the pages of its dirty dropbehind folios. A folio counts while both
//! of its flags are set. Several change them at a time, and the counter is right if each change of
//! "both" is seen by exactly one of them: by the one who has made it. So
//!
//! - who changes one flag learns in the **same** atomic operation what both were before
//!   ([`Flags`]), and adds what [`change`] says;
//! - what is added goes to the wb that the folio's inode has **then**: between the change of the
//!   flag and the addition the inode keeps its wb.
//!
//! | change | C counterpart | counter | under |
//! | --- | --- | --- | --- |
//! | a dropbehind folio becomes dirty | `__folio_mark_dirty()` | + pages | its cache's lock |
//! | a lookup takes dropbehind from it | `__filemap_get_folio()` | - pages if dirty | the same |
//! | it is cleaned for I/O | `folio_clear_dirty_for_io()` | - pages if dropbehind | a wb section |
//! | its data is cancelled | `folio_account_cleaned()` | - pages if dropbehind | both |
//! | its inode gets another wb | `inode_do_switch_wbs()` | - old, + new | both, alone |
//! | it moves in memory, or is split | `__folio_migrate_mapping()` | none | the lock, alone |
//!
//! In C a folio is made dirty first and is accounted later, under the lock. A dropbehind folio is
//! made dirty under that lock, too: otherwise a lookup or a switch in between could not know
//! whether it is in the counter. A folio is born with dropbehind or never has it. Who would set it
//! later has to hold the lock of the page cache, and to keep off those who have read that the folio
//! does not have it and are about to make it dirty: as at its birth, nobody else may use the folio.

/// The flags of a folio that decide whether it counts, at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags {
    /// It has data that its device does not have (`PG_dirty`).
    pub dirty: bool,
    /// It is to leave the page cache once it is clean (`PG_dropbehind`).
    pub dropbehind: bool,
}

impl Flags {
    /// Whether the folio's pages are in the counter.
    #[inline(always)]
    pub fn counts(self) -> bool {
        self.dirty && self.dropbehind
    }

    /// The same once the folio is clean.
    #[inline(always)]
    pub fn cleaned(self) -> Self {
        Self {
            dirty: false,
            ..self
        }
    }

    /// The same once somebody else than DONTCACHE uses the folio.
    #[inline(always)]
    pub fn claimed(self) -> Self {
        Self {
            dropbehind: false,
            ..self
        }
    }
}

/// What a change of flags from `before` to `after` adds to the counter, in folios: 1, 0 or -1.
///
/// # Examples
///
/// ```
/// use kernel::writeback::account::{change, Flags};
///
/// let dirty = Flags { dirty: true, dropbehind: true };
/// // Of one who cleans the folio and one who claims it, the first takes it out.
/// assert_eq!(change(dirty, dirty.cleaned()), -1);
/// assert_eq!(change(dirty.cleaned(), dirty.cleaned().claimed()), 0);
/// ```
#[inline(always)]
pub fn change(before: Flags, after: Flags) -> i64 {
    i64::from(after.counts()).wrapping_sub(i64::from(before.counts()))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const fn flags(dirty: bool, dropbehind: bool) -> Flags {
        Flags { dirty, dropbehind }
    }

    #[test]
    fn only_both_count() {
        assert!(flags(true, true).counts());
        assert!(!flags(true, false).counts());
        assert!(!flags(false, true).counts());
        assert!(!flags(false, false).counts());
    }

    #[test]
    fn who_ends_both_takes_it_out() {
        let before = flags(true, true);
        assert_eq!(change(before, before.cleaned()), -1);
        assert_eq!(change(before, before.claimed()), -1);
    }

    #[test]
    fn who_comes_second_does_not() {
        let cleaned = flags(true, true).cleaned();
        assert_eq!(change(cleaned, cleaned.claimed()), 0);
        let claimed = flags(true, true).claimed();
        assert_eq!(change(claimed, claimed.cleaned()), 0);
    }

    #[test]
    fn who_begins_both_counts_it() {
        assert_eq!(change(flags(false, true), flags(true, true)), 1);
        assert_eq!(change(flags(false, false), flags(true, false)), 0);
        assert_eq!(change(flags(true, true), flags(true, true)), 0);
    }
}
