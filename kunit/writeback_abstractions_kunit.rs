// SPDX-License-Identifier: GPL-2.0

//! Tests of the safe abstractions over folios and backing devices, on kernel objects.

use kernel::prelude::*;

#[kunit_tests(rust_writeback_abstractions)]
mod tests {
    use kernel::{
        alloc::flags::GFP_KERNEL,
        backing_dev::{
            BdiWriteback,
            WbStat, //
        },
        bindings,
        error::{
            code,
            Result, //
        },
        folio::{
            Folio,
            DIRTY,
            DROPBEHIND,
            WRITEBACK, //
        },
        page::Page,
        sync::aref::ARef,
        writeback::kick::{
            ask,
            consume,
            Bit,
            Run,
            Wb, //
        }, //
    };

    /// The wb of file systems without writeback: its flusher is never woken.
    fn idle_wb() -> &'static BdiWriteback {
        // SAFETY: `noop_backing_dev_info` is initialised at boot and never freed.
        unsafe { BdiWriteback::from_raw(&raw mut bindings::noop_backing_dev_info.wb) }
    }

    /// A page is a folio of one page.
    fn folio_of(page: &Page) -> &Folio {
        // SAFETY: `page` owns a reference on the page, for as long as it is borrowed. It is new,
        // and could be added to a page cache.
        unsafe { Folio::from_raw(page.as_ptr().cast()) }
    }

    #[test]
    fn state_bits_are_what_c_sees() -> Result {
        let wb = idle_wb();
        assert!(!wb.test(Bit::Pending));
        assert!(!wb.test_and_set(Bit::Pending));
        assert!(wb.test_and_set(Bit::Pending));
        // SAFETY: The wb is never freed, and no other code uses this bit of it.
        let state = unsafe { (*wb.as_raw()).state };
        assert!(state & (1 << bindings::wb_state_WB_start_dontcache) != 0);
        assert!(wb.test_and_clear(Bit::Pending));
        assert!(!wb.test_and_clear(Bit::Pending));
        assert!(!wb.test(Bit::Pending));
        Ok(())
    }

    #[test]
    fn the_counter_sums_exactly() -> Result {
        let wb = idle_wb();
        for pages in [1, 512, 1 << 20, -1, -512, -(1 << 20)] {
            let before = wb.stat_sum(WbStat::DontcacheDirty);
            wb.add_dontcache_dirty(pages);
            assert_eq!(wb.stat_sum(WbStat::DontcacheDirty), before + pages);
        }
        assert_eq!(wb.stat_sum(WbStat::DontcacheDirty), 0);
        assert_eq!(wb.stat_sum(WbStat::Written), 0);
        Ok(())
    }

    #[test]
    fn a_request_is_consumed_once() -> Result {
        let wb = idle_wb();
        let kick_at = wb.kick_at();
        assert_eq!(ask(wb), Some(Run::Later));
        assert_eq!(ask(wb), None);
        wb.set_kick_at(0);
        assert_eq!(ask(wb), Some(Run::Now));
        assert_eq!(ask(wb), None);
        wb.add_dontcache_dirty(3);
        assert_eq!(consume(wb), Some(3));
        assert_eq!(consume(wb), None);
        wb.add_dontcache_dirty(-3);
        wb.set_kick_at(kick_at);
        Ok(())
    }

    #[test]
    fn a_guard_holds_the_lock_of_a_folio() -> Result {
        let page = Page::alloc_page(GFP_KERNEL)?;
        let folio = folio_of(&page);
        assert!(!folio.test_locked());
        {
            let locked = folio.try_lock().ok_or(code::EBUSY)?;
            assert!(locked.test_locked());
            assert!(folio.try_lock().is_none());
        }
        assert!(!folio.test_locked());
        assert!(folio.try_lock().is_some());
        assert!(!folio.test_locked());
        Ok(())
    }

    #[test]
    fn flags_of_a_folio() -> Result {
        let page = Page::alloc_page(GFP_KERNEL)?;
        let folio = folio_of(&page);
        assert_eq!(folio.nr_pages(), 1);
        assert!(folio.flags() & (DIRTY | WRITEBACK | DROPBEHIND) == 0);
        assert!(!folio.test_uptodate());
        folio.try_lock().ok_or(code::EBUSY)?.mark_uptodate();
        assert!(folio.test_uptodate());
        Ok(())
    }

    #[test]
    fn a_counted_reference_keeps_a_folio() -> Result {
        let page = Page::alloc_page(GFP_KERNEL)?;
        let kept: ARef<Folio> = folio_of(&page).into();
        drop(page);
        let guard = kept.try_lock().ok_or(code::EBUSY)?;
        assert!(guard.test_locked());
        Ok(())
    }
}
