// SPDX-License-Identifier: GPL-2.0

//! The safe abstractions over folios and backing devices, on the real things.

use kernel::prelude::*;

#[kunit_tests(rust_writeback_abstractions)]
mod tests {
    use kernel::{
        alloc::flags::GFP_KERNEL,
        backing_dev::{
            BdiWriteback,
            WbStat,
            WbState, //
        },
        bindings,
        error::Result,
        folio::Folio,
        page::Page,
        sync::aref::ARef,
        writeback::kick::{
            consume,
            kick,
            Request,
            Wb,
            Why, //
        }, //
    };

    /// The wb of file systems that have no writeback: nobody wakes its flusher.
    fn idle_wb() -> &'static BdiWriteback {
        // SAFETY: `noop_backing_dev_info` is initialised at boot and never freed.
        unsafe { BdiWriteback::from_raw(&raw mut bindings::noop_backing_dev_info.wb) }
    }

    /// A page is a folio of one page.
    fn folio_of(page: &Page) -> &Folio {
        // SAFETY: `page` owns a reference on the page, for as long as it is borrowed. It is new,
        // and could be put into a page cache.
        unsafe { Folio::from_raw(page.as_ptr().cast()) }
    }

    #[test]
    fn state_bits_are_what_c_sees() -> Result {
        let wb = idle_wb();
        assert!(!wb.test(WbState::StartDontcache));
        assert!(!wb.test_and_set(WbState::StartDontcache));
        assert!(wb.test_and_set(WbState::StartDontcache));
        // SAFETY: The wb is never freed; nobody else uses this bit of it.
        let state = unsafe { (*wb.as_raw()).state };
        assert!(state & (1 << bindings::wb_state_WB_start_dontcache) != 0);
        assert!(wb.test_and_clear(WbState::StartDontcache));
        assert!(!wb.test_and_clear(WbState::StartDontcache));
        assert!(!wb.test(WbState::StartDontcache));
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
        assert_eq!(wb.stat_sum(WbStat::Reclaimable), 0);
        Ok(())
    }

    #[test]
    fn a_kick_needs_dirty_io_and_is_consumed_once() -> Result {
        let wb = idle_wb();
        assert!(!kick(wb, || false));
        assert!(!wb.test_and_set(WbState::HasDirtyIo));
        assert!(kick(wb, || false));
        assert!(!kick(wb, || false));
        wb.add_dontcache_dirty(3);
        let request = Request {
            pages: 3,
            why: Why::Size,
            rest_ms: wb.delay_ms(),
        };
        assert_eq!(consume(wb), Some(request));
        assert_eq!(consume(wb), None);
        wb.add_dontcache_dirty(-3);
        assert!(wb.test_and_clear(WbState::HasDirtyIo));
        Ok(())
    }

    /// As where another guard has them off, or the section of another inode.
    #[cfg(CONFIG_CGROUP_WRITEBACK)]
    #[test]
    fn waking_leaves_interrupts_off() -> Result {
        use kernel::{
            alloc::KBox,
            fs::Inode,
            interrupts_off::InterruptsSaved, //
        };

        let mut inode = KBox::<bindings::inode>::zeroed(GFP_KERNEL)?;
        inode.i_wb = idle_wb().as_raw();
        // SAFETY: It is all zeroes but for its wb, and that is what a section looks at.
        let inode = unsafe { Inode::from_raw(&raw mut *inode) };
        let wb = inode.wb_section().into_ref();
        // SAFETY: No other guard is dropped while this lives, and it is no NMI's.
        let off = unsafe { InterruptsSaved::new() };
        if let Some(wb) = &wb {
            wb.run_within(0);
        }
        // SAFETY: Anybody may ask.
        let still_off = unsafe { bindings::irqs_disabled() };
        drop(off);
        assert!(wb.is_some() && still_off);
        Ok(())
    }

    #[test]
    fn a_guard_holds_the_lock_of_a_folio() -> Result {
        let page = Page::alloc_page(GFP_KERNEL)?;
        let folio = folio_of(&page);
        assert!(!folio.test_locked());
        {
            let locked = folio.lock();
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
        assert!(!folio.test_dirty());
        assert!(!folio.test_uptodate());
        assert!(!folio.test_writeback());
        assert!(!folio.test_dropbehind());
        let locked = folio.lock();
        locked.set_dropbehind();
        assert!(folio.test_dropbehind());
        Ok(())
    }

    #[test]
    fn a_counted_reference_keeps_a_folio() -> Result {
        let page = Page::alloc_page(GFP_KERNEL)?;
        let kept: ARef<Folio> = folio_of(&page).into();
        drop(page);
        let guard = kept.lock();
        assert!(guard.test_locked());
        Ok(())
    }
}
