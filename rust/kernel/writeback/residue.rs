// SPDX-License-Identifier: GPL-2.0

//! Whether the counter of dirty dropbehind pages claims what is not there.
//!
//! A wb without dirty pages has no dirty dropbehind pages either. But the counters of a wb are
//! changed one after the other, by many CPUs, and cannot be read at one moment.

/// What is read of a `bdi_writeback`: exact sums over all CPUs, in pages.
pub trait Wb {
    /// Dirty dropbehind pages.
    fn dontcache_dirty(&self) -> i64;

    /// Dirty pages. Changed after [`dontcache_dirty`](Self::dontcache_dirty) for the same folio.
    fn dirty(&self) -> i64;

    /// Pages dirtied since the wb was made. Changed last of the three.
    fn dirtied(&self) -> i64;
}

/// How many pages the counter of dirty dropbehind pages is too high, or too low if below zero.
///
/// Zero unless it is certain. `wait_for_accounting` returns when all that are at this moment
/// between two changes for the same folio have made the second: they have interrupts off or are in
/// an RCU read-side section.
///
/// What was claimed before the first wait is accounted as dirty after it; if that is none, nobody
/// has the claimed pages, unless others were dirtied meanwhile that make the same number. These are
/// accounted to the end after the second wait.
pub fn residue(wb: &impl Wb, wait_for_accounting: impl Fn()) -> i64 {
    let dirtied = wb.dirtied();
    let claimed = wb.dontcache_dirty();
    if claimed == 0 {
        return 0;
    }
    wait_for_accounting();
    if wb.dirty() != 0 || wb.dontcache_dirty() != claimed {
        return 0;
    }
    wait_for_accounting();
    if wb.dirty() != 0 || wb.dirtied() != dirtied {
        return 0;
    }
    claimed
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use core::cell::Cell;

    #[derive(Default)]
    struct Counters {
        dontcache_dirty: Cell<i64>,
        dirty: Cell<i64>,
        dirtied: Cell<i64>,
    }

    impl Wb for Counters {
        fn dontcache_dirty(&self) -> i64 {
            self.dontcache_dirty.get()
        }
        fn dirty(&self) -> i64 {
            self.dirty.get()
        }
        fn dirtied(&self) -> i64 {
            self.dirtied.get()
        }
    }

    #[test]
    fn what_nobody_has_is_a_residue() {
        for pages in [5, -5] {
            let wb = Counters::default();
            wb.dontcache_dirty.set(pages);
            assert_eq!(residue(&wb, || ()), pages);
        }
    }

    #[test]
    fn nothing_claimed_waits_for_nobody() {
        assert_eq!(residue(&Counters::default(), || panic!("waited")), 0);
    }

    #[test]
    fn dirty_pages_are_none() {
        let wb = Counters::default();
        wb.dontcache_dirty.set(5);
        wb.dirty.set(5);
        assert_eq!(residue(&wb, || ()), 0);
    }

    /// A folio is dirtied, and perhaps cleaned again, around each of the looks.
    #[test]
    fn accounting_under_way_is_none() {
        let wb = Counters::default();
        wb.dontcache_dirty.set(5);
        assert_eq!(residue(&wb, || wb.dirty.set(5)), 0);

        let wb = Counters::default();
        wb.dontcache_dirty.set(5);
        assert_eq!(residue(&wb, || wb.dontcache_dirty.set(0)), 0);

        let wb = Counters::default();
        wb.dontcache_dirty.set(5);
        assert_eq!(residue(&wb, || wb.dirtied.set(5)), 0);

        // The pages that were claimed were written, and as many are being dirtied.
        let wb = Counters::default();
        let waits = Cell::new(0);
        wb.dontcache_dirty.set(5);
        let accounted = || {
            waits.set(waits.get() + 1);
            if waits.get() == 2 {
                wb.dirty.set(5);
            }
        };
        assert_eq!(residue(&wb, accounted), 0);
    }
}
