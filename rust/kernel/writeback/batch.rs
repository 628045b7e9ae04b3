// SPDX-License-Identifier: GPL-2.0

//! Completions that wait for a context in which they may sleep.
//!
//! Each CPU has a batch. Interrupts on that CPU add to it ([`add`]), and whoever drains it takes
//! one after the other ([`pop`]): as a rule the CPU's own worker, another worker where that one does
//! not get to run, and the CPU that removes this one. Two lists make up a batch:
//!
//! - **added**: what was added, the newest first. An addition that finds it empty has to schedule a
//!   worker; the others know that somebody has.
//! - **taken**: what a drainer has turned round, the oldest first. Its head is also its lock, which
//!   is held for a few instructions, and to turn round what was added.
//!
//! What a drainer holds outside the lists is the one completion that it is at. So if it loses its
//! CPU to a real-time task, another one can go on with the next.
//!
//! Every completion is popped once, in the order in which it was added. None is left behind: an
//! addition either finds others, whose worker has yet to take them and takes it along, or it finds
//! none and has a worker scheduled, which runs after it.

/// A batch of completions, as the protocol sees it.
pub trait Batch {
    /// A completion. It is in one list of one batch, or with one drainer.
    type Node: Copy;

    /// The node that follows in a list.
    fn next(&self, node: Self::Node) -> Option<Self::Node>;

    /// Sets the node that follows. `node` is in no list that others see.
    fn set_next(&self, node: Self::Node, next: Option<Self::Node>);

    /// The node that was added last. Unordered.
    fn newest(&self) -> Option<Self::Node>;

    /// Makes `new` the node that was added last, if that is still `old`; says what it is otherwise.
    /// What was written before is visible to who takes `new`.
    fn replace_newest(
        &self,
        old: Option<Self::Node>,
        new: Self::Node,
    ) -> Result<(), Option<Self::Node>>;

    /// Takes all that was added, and returns the newest.
    fn take_added(&self) -> Option<Self::Node>;

    /// Waits for the lock of the taken, and returns the oldest.
    fn lock_taken(&self) -> Option<Self::Node>;

    /// Releases the lock, and leaves `oldest` and what follows it.
    fn unlock_taken(&self, oldest: Option<Self::Node>);
}

/// Adds a completion, and says whether the caller has to schedule a worker now.
///
/// Context: any. In one context at a time or in several that interrupt each other, on the batch's
/// CPU.
#[inline(always)]
pub fn add<B: Batch>(batch: &B, node: B::Node) -> bool {
    let mut newest = batch.newest();
    loop {
        batch.set_next(node, newest);
        match batch.replace_newest(newest, node) {
            Ok(()) => return newest.is_none(),
            Err(now) => newest = now,
        }
    }
}

/// Takes the completion that was added first, if there is one.
///
/// Context: the caller keeps its CPU throughout, for others wait for the lock.
#[inline(always)]
pub fn pop<B: Batch>(batch: &B) -> Option<B::Node> {
    let oldest = match batch.lock_taken() {
        None => turned_round(batch, batch.take_added()),
        taken => taken,
    };
    batch.unlock_taken(oldest.and_then(|node| batch.next(node)));
    oldest
}

/// Turns a list round, and returns what was its last node.
#[inline(always)]
fn turned_round<B: Batch>(batch: &B, newest: Option<B::Node>) -> Option<B::Node> {
    let (mut left, mut turned) = (newest, None);
    while let Some(node) = left {
        left = batch.next(node);
        batch.set_next(node, turned);
        turned = Some(node);
    }
    turned
}
