// SPDX-License-Identifier: GPL-2.0
// compile error: none

//! The control: correct versions of the other programs.

use kernel::{
    bio::{BioTask, CompletedBio},
    buffer_head::BufferRing,
    dropbehind::DropRing,
    folio::{Folio, LockedFolio},
    fs::AddressSpace,
    interrupt::local_interrupt_disable,
    writeback::buffer_walk::{Buffer, Ring},
};

/// Marks under the lock of the folio, wakes under the lock of the page cache.
pub fn proper(folio: &Folio, mapping: &AddressSpace) {
    if let Some(guard) = folio.try_lock() {
        guard.mark_uptodate();
    }
    let pages = mapping.lock_pages();
    if let Some(wb) = pages.wb() {
        wb.run_within(0);
    }
}

/// Walks the buffers under the lock, in the thread that holds it.
pub fn proper_walk(folio: &LockedFolio) -> usize {
    // SAFETY: The folio has buffers, for the sake of the example.
    let Some(ring) = (unsafe { BufferRing::of(folio) }) else {
        return 0;
    };
    ring.buffers(0..ring.blocks())
        .filter(|buffer| buffer.is_uptodate())
        .count()
}

/// Adds a bio, and ends all bios that were added.
pub fn proper_task(bio: CompletedBio) {
    BioTask::add(bio);
    BioTask::of_this_cpu().end_all();
}

/// Reads this CPU's share while the context stays on the CPU.
pub fn proper_share() -> *const DropRing {
    let off = local_interrupt_disable();
    core::ptr::from_ref(DropRing::of_this_cpu(&off))
}

/// Ends dropbehind after the last use of the buffers.
pub fn proper_end(folio: &Folio) -> Option<usize> {
    let guard = folio.try_lock()?;
    let blocks = proper_walk(&guard);
    // SAFETY: The context is a task with interrupts on, for the sake of the example.
    unsafe { guard.end_dropbehind() };
    Some(blocks)
}
