// SPDX-License-Identifier: GPL-2.0

//! Completions that wait for a context in which they may sleep.
//!
//! Each CPU has a batch, which only that CPU accesses, and only with interrupts off: so the methods
//! of [`Batch`] need no atomics, and each is one step to everybody else. Interrupts add
//! ([`add`](Batch::add)), and the CPU's worker takes all there is ([`take`](Batch::take)) until it
//! finds nothing. What comes while others wait joins them ([`join`](Batch::join)).
//!
//! Somebody always knows of what waits:
//!
//! | state | what comes next |
//! | --- | --- |
//! | idle | nothing waits |
//! | running | a worker is queued or runs, and looks once more before it ends |
//! | resting | the same, and the worker is to let other work have its turn |
//! | leaving | once the interrupt is over, all that waits moves to another CPU |
//!
//! **Moving.** Where a real-time task has the CPU, the worker does not get it. The batch then goes
//! to another CPU, whose worker does ([`leave`](Batch::leave), [`receive`](Batch::receive)): at
//! once if the interrupt has come upon such a task, or if one was in the way not long ago, and
//! otherwise when somebody looks after the worker, in two ticks as a rule ([`look`](Batch::look)).
//! Nobody knows of another CPU what it runs: one that is sent a batch while it runs such a task,
//! too, sends it on, and whoever sends is no place to send to for a while.
//!
//! Every completion is taken once, in the order in which it was added. What moves is ended beside
//! what a worker has taken before.

/// A list of completions, the oldest first. The default is empty.
pub trait List: Default {
    /// A completion. It is in one list at most.
    type Item;

    /// Whether there is none.
    fn is_empty(&self) -> bool;

    /// What tells the first one from others that are in the list: no zero. Zero if there is none.
    fn first(&self) -> usize;

    /// Takes all, and leaves none.
    fn take(&mut self) -> Self;

    /// Puts one behind the others.
    fn push(&mut self, item: Self::Item);

    /// Puts all of `other` behind the others.
    fn append(&mut self, other: Self);
}

/// What becomes of a batch that has waiting completions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// Nothing does: there are none.
    #[default]
    Idle,
    /// The worker is queued or runs.
    Running,
    /// The worker runs for long, and is to be queued again.
    Resting,
    /// All goes to another CPU once the interrupt is over.
    Leaving,
}

/// What a worker finds.
#[derive(Debug)]
pub enum Taken<L> {
    /// What waited.
    Some(L),
    /// Nothing: the worker has to end.
    None,
    /// The worker has to be queued again, and to end.
    Rest,
}

/// How many ticks a worker takes what comes before it rests.
const LONG_RUN: u8 = 2;

/// What the caller of [`Batch::add`] or [`Batch::receive`] has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Todo {
    /// Look after the worker in a tick's time, if nobody is to. So with all that follow.
    Watch,
    /// Queue the worker.
    Run,
    /// Move the batch to another CPU once the interrupt is over, if it is to
    /// [leave](Batch::is_leaving) then; if there is no CPU for it, [`run`](Batch::run) it here.
    /// Where what was moved before is still on its way, the next look has to try again.
    Move,
}

/// What somebody finds who looks after the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Nothing waits: the look needs no other.
    Empty,
    /// The worker gets on.
    Made,
    /// The worker has not taken what was there at the last look, and a real-time task has its CPU:
    /// all has to leave.
    None,
}

/// The circumstances of an addition.
pub trait Moment {
    /// How many ticks make a second.
    const HZ: usize;

    /// Now, in ticks. They wrap.
    fn tick(&self) -> usize;

    /// Whether a real-time task has the CPU.
    fn is_crowded(&self) -> bool;
}

/// The completions that wait on one CPU. All zeroes is an empty one.
#[repr(C)]
#[derive(Debug, Default)]
pub struct Batch<L> {
    /// What waits while a worker runs.
    waiting: L,
    /// What waits otherwise.
    put_off: L,
    state: State,
    /// For how many looks the worker runs.
    looks: u8,
    /// Whether a real-time task was in the way at `crowded_at`.
    crowded: bool,
    crowded_at: usize,
    /// What was the first when somebody looked last.
    seen: usize,
    /// The tick in which that was.
    looked_at: usize,
}

impl<L: List> Batch<L> {
    /// Adds a completion to those that are about to be taken. Gives it back if there are none, for
    /// [`add`](Self::add).
    #[inline(always)]
    pub fn join(&mut self, item: L::Item) -> Result<(), L::Item> {
        if self.waiting.is_empty() {
            return Err(item);
        }
        self.waiting.push(item);
        Ok(())
    }

    /// Adds a completion that cannot join others.
    #[inline(always)]
    pub fn add<M: Moment>(&mut self, item: L::Item, moment: &M) -> Todo {
        if self.state == State::Idle {
            return self.begin(item, moment);
        }
        self.list().push(item);
        Todo::Watch
    }

    /// Where a completion has to wait.
    #[inline(always)]
    fn list(&mut self) -> &mut L {
        match self.state {
            State::Resting | State::Leaving => &mut self.put_off,
            State::Idle | State::Running => &mut self.waiting,
        }
    }

    /// Adds what another CPU has sent. It moves on if no worker is queued and one would not get
    /// this CPU. Two CPUs do not play ball: nothing is sent to one that has sent something not long
    /// ago.
    pub fn receive<M: Moment>(&mut self, items: L, moment: &M) -> Todo {
        let mut todo = Todo::Watch;
        if self.state == State::Idle {
            if moment.is_crowded() {
                self.crowd(moment.tick());
                self.state = State::Leaving;
                todo = Todo::Move;
            } else {
                self.state = State::Running;
                todo = Todo::Run;
            }
        }
        self.list().append(items);
        todo
    }

    /// Adds the first of a batch.
    #[inline(always)]
    fn begin<M: Moment>(&mut self, item: L::Item, moment: &M) -> Todo {
        let tick = moment.tick();
        let crowded = moment.is_crowded();
        if crowded {
            self.crowd(tick);
        }
        if crowded || self.was_crowded(tick, M::HZ) {
            self.state = State::Leaving;
            self.put_off.push(item);
            return Todo::Move;
        }
        self.state = State::Running;
        self.waiting.push(item);
        Todo::Run
    }

    /// Whether a real-time task was in the way in the last second. One that runs now and again is
    /// likely to come upon the worker, too, when that has just begun.
    #[inline(always)]
    fn was_crowded(&mut self, tick: usize, hz: usize) -> bool {
        if self.crowded && tick.wrapping_sub(self.crowded_at) >= hz {
            self.crowded = false;
        }
        self.crowded
    }

    fn crowd(&mut self, tick: usize) {
        self.crowded = true;
        self.crowded_at = tick;
    }

    /// Takes all that waits, for the worker.
    #[inline(always)]
    pub fn take(&mut self) -> Taken<L> {
        if self.waiting.is_empty() {
            return self.find_nothing();
        }
        Taken::Some(self.waiting.take())
    }

    #[inline(always)]
    fn find_nothing(&mut self) -> Taken<L> {
        self.looks = 0;
        if matches!(self.state, State::Idle | State::Running) {
            self.state = State::Idle;
            return Taken::None;
        }
        if self.rests() {
            return Taken::Rest;
        }
        Taken::Some(self.waiting.take())
    }

    /// Puts what was put off to what waits, and says whether the worker has to come again for it.
    /// Apart, for it is rare.
    #[cold]
    fn rests(&mut self) -> bool {
        let rests = self.state == State::Resting;
        self.run();
        if !rests {
            // It was queued before all was to leave, and got its CPU first; or it is that of a CPU
            // that has gone, which does not come here again.
            self.state = State::Idle;
        }
        rests
    }

    /// Has all that waits taken.
    #[inline(always)]
    pub fn run(&mut self) {
        self.state = State::Running;
        let late = self.put_off.take();
        self.waiting.append(late);
    }

    /// Whether all that waits is to move to another CPU.
    pub fn is_leaving(&self) -> bool {
        self.state == State::Leaving
    }

    /// Takes all that waits, for another CPU. A worker that is queued finds nothing.
    pub fn leave(&mut self) -> L {
        self.run();
        self.state = State::Idle;
        self.looks = 0;
        self.waiting.take()
    }

    /// Takes back what has left and was not received, for the worker. Nothing was added meanwhile.
    pub fn stay(&mut self, items: L) {
        self.waiting.append(items);
        self.run();
    }

    /// Takes all that waits on a CPU that is gone. Nothing will run there.
    pub fn retire(&mut self) -> L {
        let mut gone = core::mem::take(self);
        gone.waiting.append(gone.put_off);
        gone.waiting
    }

    /// Looks after the worker. It gets on if what was the first a tick ago is not the first now,
    /// and will if nothing keeps it from its CPU.
    pub fn look<M: Moment>(&mut self, moment: &M) -> Progress {
        let (tick, first) = (moment.tick(), self.list().first());
        // Other lazy work may have somebody look early.
        if first != 0 && tick == self.looked_at {
            return Progress::Made;
        }
        self.looked_at = tick;
        let seen = core::mem::replace(&mut self.seen, first);
        if first == 0 {
            Progress::Empty
        } else if self.state == State::Leaving {
            Progress::None
        } else if first == seen && moment.is_crowded() {
            self.crowd(tick);
            Progress::None
        } else {
            self.tire();
            Progress::Made
        }
    }

    /// Has a worker that runs for long find nothing.
    fn tire(&mut self) {
        self.looks = self.looks.saturating_add(1);
        if self.looks > LONG_RUN && self.state == State::Running {
            self.state = State::Resting;
            core::mem::swap(&mut self.waiting, &mut self.put_off);
        }
    }
}
