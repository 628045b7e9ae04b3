// SPDX-License-Identifier: GPL-2.0
// compile error: none

//! The control: what the others do wrong, done right.

use kernel::{
    bio::CompletedBio,
    bio_batch::{BioBatch, OwnBatch},
    buffer_head::BufferRing,
    cpu::CpuId,
    cpu_work::CpuWork,
    folio::{Folio, LockedFolio},
    fs::Inode,
    interrupts_off::InterruptsSaved,
    percpu::{CpuGuard, PossibleCpu},
    workqueue::Queue,
    writeback::{batch::Taken, buffer_walk::Buffer},
};

/// Marks under the lock, looks inside the section, wakes after it.
pub fn proper(folio: &Folio, inode: &Inode) {
    folio.lock().set_dropbehind();
    let section = inode.wb_section();
    if section.wb().is_none() {
        return;
    }
    if let Some(wb) = section.into_ref() {
        wb.run_within(0);
    }
}

/// Walks the buffers under the lock, in the thread that has it.
pub fn proper_walk(folio: &LockedFolio) -> usize {
    // SAFETY: The folio has buffers, for the sake of the example.
    let Some(ring) = (unsafe { BufferRing::of(folio) }) else {
        return 0;
    };
    ring.cursor(0..ring.blocks())
        .filter(|buffer| buffer.is_uptodate())
        .count()
}

/// Adds with interrupts off, and ends what it has taken with interrupts on.
pub fn proper_batch(bio: CompletedBio) {
    let taken = {
        // SAFETY: The only guard, and no NMI's.
        let off = unsafe { InterruptsSaved::new() };
        let batch = OwnBatch::this(&off);
        batch.add(bio);
        batch.take()
    };
    if let Taken::Some(mut bios) = taken {
        while let Some(bio) = bios.pop() {
            bio.end();
        }
    }
}

/// Looks at what any CPU may look at, while it stays on its CPU.
pub fn proper_share() -> *const BioBatch {
    let pinned = CpuGuard::new();
    core::ptr::from_ref(BioBatch::per_cpu().this(&pinned))
}

/// Looks at another CPU's share, and has it work, if there is such a CPU.
pub fn proper_cpu(cpu: CpuId, work: &CpuWork, queue: &Queue) -> Option<*const BioBatch> {
    let cpu = PossibleCpu::new(cpu)?;
    work.queue_on(cpu, queue);
    Some(core::ptr::from_ref(BioBatch::per_cpu().of(cpu)))
}

/// Ends dropbehind when nobody uses the buffers any more.
pub fn proper_end(folio: &Folio) -> usize {
    let guard = folio.lock();
    let blocks = proper_walk(&guard);
    guard.end_dropbehind();
    blocks
}
