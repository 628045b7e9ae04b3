// SPDX-License-Identifier: GPL-2.0
// compile error: none

//! The control: what the others do wrong, done right.

use kernel::{
    bio::{BioBatch, CompletedBio},
    buffer_head::BufferRing,
    folio::{Folio, LockedFolio},
    fs::Inode,
    percpu::CpuPinned,
};

/// Marks under the lock, looks inside the section, wakes after it.
pub fn proper(folio: &Folio, inode: &Inode) {
    folio.lock().set_dropbehind();
    let section = inode.wb_section();
    if section.wb().is_none() {
        return;
    }
    if let Some(wb) = section.into_ref() {
        wb.wakeup();
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

/// Adds while it is pinned, ends what it has taken.
pub fn proper_batch(bio: CompletedBio) {
    let pinned = CpuPinned::new();
    let batch = BioBatch::per_cpu().this(&pinned);
    if batch.add(bio) {
        batch.queue();
    }
    if let Some(bio) = batch.pop() {
        bio.end();
    }
}
