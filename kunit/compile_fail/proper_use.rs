// SPDX-License-Identifier: GPL-2.0
// compile error: none

//! The control: correct versions of the other programs.

use kernel::{
    bio::{BioTask, CompletedBio},
    buffer_head::BufferRing,
    cpu::CpuId,
    folio::{Folio, LockedFolio},
    fs::Inode,
    percpu::{CpuGuard, PossibleCpu},
    writeback::buffer_walk::Buffer,
};

/// Marks under the lock, reads inside the section, wakes after it.
pub fn proper(folio: &Folio, inode: &Inode) {
    if let Some(guard) = folio.try_lock() {
        guard.mark_uptodate();
    }
    let section = inode.wb_section();
    if section.wb().is_none() {
        return;
    }
    if let Some(wb) = section.into_ref() {
        wb.run_within(0);
    }
}

/// Walks the buffers under the lock, in the thread that holds it.
pub fn proper_walk(folio: &LockedFolio) -> usize {
    // SAFETY: The folio has buffers, for the sake of the example.
    let Some(ring) = (unsafe { BufferRing::of(folio) }) else {
        return 0;
    };
    ring.cursor(0..ring.blocks())
        .filter(|buffer| buffer.is_uptodate())
        .count()
}

/// Adds a bio, and ends all bios that were added.
pub fn proper_task(bio: CompletedBio) {
    BioTask::add(bio);
    let pinned = CpuGuard::new();
    let mut bios = BioTask::per_cpu().this(&pinned).take();
    drop(pinned);
    while let Some(bio) = bios.pop() {
        bio.end();
    }
}

/// Reads this CPU's share while the context stays on the CPU.
pub fn proper_share() -> *const BioTask {
    let pinned = CpuGuard::new();
    core::ptr::from_ref(BioTask::per_cpu().this(&pinned))
}

/// Reads another CPU's share, if that CPU is possible.
pub fn proper_cpu(cpu: CpuId) -> Option<*const BioTask> {
    let cpu = PossibleCpu::new(cpu)?;
    Some(core::ptr::from_ref(BioTask::per_cpu().of(cpu)))
}

/// Ends dropbehind after the last use of the buffers.
pub fn proper_end(folio: &Folio) -> Option<usize> {
    let guard = folio.try_lock()?;
    let blocks = proper_walk(&guard);
    // SAFETY: The context is a task with interrupts on, for the sake of the example.
    unsafe { guard.end_dropbehind() };
    Some(blocks)
}
