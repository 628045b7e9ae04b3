// SPDX-License-Identifier: GPL-2.0

//! The completed bios of a CPU that wait for a task to end them.
//!
//! What to do with them is decided in [`crate::writeback::batch`]; here is what it is done with.
//!
//! C header: [`include/linux/rust_bio_batch.h`](srctree/include/linux/rust_bio_batch.h)

use crate::{
    bindings,
    bio::{
        BioList,
        CompletedBio, //
    },
    cpu_work::CpuWork,
    interrupts_off::InterruptsOff,
    percpu::{
        PerCpu,
        PossibleCpu, //
    },
    sched,
    sync::atomic::{
        Acquire,
        Atomic,
        Relaxed,
        Release, //
    },
    types::{
        NotThreadSafe,
        Opaque, //
    },
    workqueue::Queue,
    writeback::batch::{
        Batch,
        Moment,
        Progress,
        Taken,
        Todo, //
    }, //
};
use core::{
    marker::PhantomData,
    mem::take, //
};

/// The batch of one CPU (`struct rust_bio_batch`), as any CPU may use it.
///
/// [`OwnBatch`] has the rest.
///
/// # Invariants
///
/// - Instances are initialised and never freed.
/// - `core` is a `Batch<BioList>` that only [`OwnBatch`] accesses.
/// - `moving` is a [`BioList`]. While `is_moving` is zero it is empty and its own CPU's; otherwise
///   it is the CPU's that it is sent to.
#[repr(transparent)]
pub struct BioBatch(Opaque<bindings::rust_bio_batch>);

// SAFETY: What the methods of `&BioBatch` access is accessed atomically, or by unsafe ones whose
// callers own it.
unsafe impl Sync for BioBatch {}

const _: () = {
    type Storage = [usize; bindings::RUST_BIO_BATCH_CORE as usize];
    assert!(size_of::<Batch<BioList>>() == size_of::<Storage>());
    assert!(align_of::<Batch<BioList>>() == align_of::<Storage>());
    assert!(size_of::<BioList>() == size_of::<bindings::bio_list>());
};

impl BioBatch {
    /// Makes a reference of a pointer that C hands over.
    ///
    /// # Safety
    ///
    /// `ptr` must point at a batch that is initialised and never freed.
    #[inline(always)]
    pub unsafe fn from_raw<'a>(ptr: *mut bindings::rust_bio_batch) -> &'a Self {
        // SAFETY: The caller promises a live batch, and `Self` is transparent over it.
        unsafe { &*ptr.cast() }
    }

    /// The batches of all CPUs.
    #[inline(always)]
    pub fn per_cpu() -> PerCpu<Self> {
        // SAFETY: C defines a batch for each possible CPU. Its core and its list are all zeroes,
        // which is what empty ones are. `Self` is transparent over it.
        unsafe { PerCpu::from_raw((&raw mut bindings::rust_bio_batches).cast()) }
    }

    #[inline(always)]
    fn as_raw(&self) -> *mut bindings::rust_bio_batch {
        self.0.get()
    }

    fn is_moving(&self) -> &Atomic<u32> {
        // SAFETY: The batch lives by the type invariants, and the field is only accessed by this.
        unsafe { Atomic::from_ptr(&raw mut (*self.as_raw()).is_moving) }
    }

    /// Takes what the batch's CPU has sent to this one.
    ///
    /// # Safety
    ///
    /// The caller must be what `is_moving` was set for: the call that `OwnBatch::send` has made.
    pub unsafe fn arrived(&self) -> BioList {
        // SAFETY: By the type invariants the list is this CPU's, and the store gives it back.
        let bios = take(unsafe { &mut *(&raw mut (*self.as_raw()).moving).cast::<BioList>() });
        self.is_moving().store(0, Release);
        bios
    }
}

/// The batch of this CPU, while interrupts are off.
///
/// # Invariants
///
/// Nobody else uses the batch's core or its `moving` list, as far as that is its own CPU's, while
/// one of the methods runs.
#[derive(Clone, Copy)]
pub struct OwnBatch<'a> {
    batch: &'a BioBatch,
    _here: PhantomData<NotThreadSafe>,
}

/// The circumstances of this moment.
struct Now;

impl Moment for Now {
    const HZ: usize = bindings::RUST_BIO_BATCH_HZ as usize;

    #[inline(always)]
    fn tick(&self) -> usize {
        sched::jiffies()
    }

    #[inline(always)]
    fn is_crowded(&self) -> bool {
        sched::interrupted_real_time()
    }
}

impl<'a> OwnBatch<'a> {
    /// The batch of this CPU.
    #[inline(always)]
    pub fn this<I: InterruptsOff>(off: &'a I) -> Self {
        // INVARIANT: Only this CPU uses its batch's core, and it does not do two things at a time
        // while interrupts are off.
        Self {
            batch: BioBatch::per_cpu().this(off),
            _here: PhantomData,
        }
    }

    /// Takes all that a CPU has left that is gone.
    ///
    /// # Safety
    ///
    /// `cpu` must be off line and stay so throughout, or be this one with interrupts off, and
    /// nobody else must call this for it.
    pub unsafe fn retire(cpu: PossibleCpu) -> BioList {
        // INVARIANT: The CPU does not use its batch, and nobody else does.
        let gone = OwnBatch {
            batch: BioBatch::per_cpu().of(cpu),
            _here: PhantomData,
        };
        gone.with_core(Batch::retire)
    }

    /// `what` must not reach a batch.
    #[inline(always)]
    fn with_core<T>(self, what: impl FnOnce(&mut Batch<BioList>) -> T) -> T {
        // SAFETY: By the invariants of both types it is such a core, and this is the only reference
        // to it: `what` makes no other.
        what(unsafe { &mut *(&raw mut (*self.batch.as_raw()).core).cast() })
    }

    /// Adds a bio to others that the worker is about to end, if there are.
    #[inline(always)]
    pub fn join(self, bio: CompletedBio) -> Result<(), CompletedBio> {
        self.with_core(|core| core.join(bio))
    }

    /// Adds a bio that has no others to join, and sees to it that it is ended.
    #[inline(always)]
    pub fn add(self, bio: CompletedBio) {
        let todo = self.with_core(|core| core.add(bio, &Now));
        self.act(todo);
    }

    /// Adds bios that another CPU has sent, or that a CPU that is gone has left.
    pub fn receive(self, bios: BioList) {
        let todo = self.with_core(|core| core.receive(bios, &Now));
        self.act(todo);
    }

    #[inline(always)]
    fn act(self, todo: Todo) {
        match todo {
            Todo::Run => self.queue(),
            Todo::Move => self.depart_soon(),
            Todo::Watch => {}
        }
        self.watch();
    }

    #[cold]
    fn depart_soon(self) {
        // SAFETY: The batch lives by its type's invariants, and its work with it.
        unsafe { bindings::rust_bio_batch_depart_soon(self.batch.as_raw()) };
    }

    /// Has the worker of this CPU end all that waits.
    fn run(self) {
        self.with_core(Batch::run);
        self.queue();
    }

    /// Takes all that waits, for the worker.
    #[inline(always)]
    pub fn take(self) -> Taken<BioList> {
        self.with_core(Batch::take)
    }

    /// Looks after the worker. Moves the batch where that does not get its CPU.
    pub fn look(self) {
        match self.with_core(|core| core.look(&Now)) {
            Progress::Empty => return,
            Progress::Made => {}
            Progress::None => self.send(),
        }
        self.watch();
    }

    /// Moves the batch if it is to leave: the interrupt is over in which that was found.
    pub fn depart(self) {
        if self.with_core(|core| core.is_leaving()) {
            self.send();
        }
    }

    /// Sends all that waits to another CPU, or queues the worker if there is none that can end it
    /// sooner. Nothing while what was sent before is on its way.
    fn send(self) {
        if self.batch.is_moving().load(Acquire) != 0 {
            return;
        }
        // SAFETY: The batch lives by its type's invariants.
        let cpu = unsafe { bindings::rust_bio_batch_find_cpu(self.batch.as_raw()) };
        if cpu < 0 {
            return self.run();
        }
        // SAFETY: By the type invariants the list is this CPU's.
        let moving = || unsafe { &mut *(&raw mut (*self.batch.as_raw()).moving).cast::<BioList>() };
        *moving() = self.with_core(Batch::leave);
        self.batch.is_moving().store(1, Relaxed);
        // SAFETY: As above. The call is made once for each time that `is_moving` is set.
        if !unsafe { bindings::rust_bio_batch_send(self.batch.as_raw(), cpu) } {
            self.batch.is_moving().store(0, Relaxed);
            let bios = take(moving());
            self.with_core(|core| core.stay(bios));
            self.queue();
        }
    }

    /// Queues the worker.
    #[inline(always)]
    fn queue(self) {
        // SAFETY: C has made the queue before any bio completes, and never destroys it.
        let queue = unsafe { Queue::from_raw(bindings::rust_bio_batch_wq) };
        // SAFETY: The batch lives by its type's invariants, and its work with it.
        let work = unsafe { CpuWork::from_raw(&raw mut (*self.batch.as_raw()).work) };
        work.queue_on(PossibleCpu::current(), queue);
    }

    /// Has somebody [`look`](Self::look) in a tick's time, if nobody is to yet.
    #[inline(always)]
    fn watch(self) {
        // SAFETY: The batch lives by its type's invariants, and its timer with it.
        unsafe { bindings::rust_bio_batch_watch(self.batch.as_raw()) };
    }
}
