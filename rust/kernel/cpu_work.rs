// SPDX-License-Identifier: GPL-2.0

//! Work that a CPU is to do in a task.
//!
//! [`crate::workqueue`] has work that owns, or is owned by, what it works on, and runs wherever it
//! was enqueued. This is work in storage of C that lives as long as the kernel, such as a CPU's
//! share of a variable, and it says where it runs.
//!
//! C header: [`include/linux/workqueue.h`](srctree/include/linux/workqueue.h)

use crate::{
    bindings,
    percpu::PossibleCpu,
    types::Opaque,
    workqueue::Queue, //
};

/// A `struct work_struct`.
///
/// # Invariants
///
/// Instances are initialised and never freed.
#[repr(transparent)]
pub struct CpuWork(Opaque<bindings::work_struct>);

// SAFETY: Work may be queued from anywhere, by several at a time.
unsafe impl Sync for CpuWork {}

impl CpuWork {
    /// Makes a reference of a pointer that C hands over.
    ///
    /// # Safety
    ///
    /// `ptr` must point at a work that is initialised and never freed.
    #[inline(always)]
    pub unsafe fn from_raw<'a>(ptr: *mut bindings::work_struct) -> &'a Self {
        // SAFETY: The caller promises a live work, and `Self` is transparent over it.
        unsafe { &*ptr.cast() }
    }

    /// Queues the work on `cpu`, unless it is queued already. Returns whether it was not.
    ///
    /// On a CPU that is not on line it runs elsewhere.
    ///
    /// Context: any.
    ///
    /// C counterpart: `queue_work_on()`.
    #[inline(always)]
    pub fn queue_on(&self, cpu: PossibleCpu, queue: &Queue) -> bool {
        let (cpu, queue) = (cpu.as_i32(), core::ptr::from_ref(queue));
        // SAFETY: The work is live by the type invariants, the queue for it is borrowed and is
        // transparent over what C calls a queue, which has a share for each possible CPU.
        unsafe { bindings::queue_work_on(cpu, queue.cast_mut().cast(), self.0.get()) }
    }
}
