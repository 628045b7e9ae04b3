// SPDX-License-Identifier: GPL-2.0

//! Finding the nth link of a ring without visiting those before it.
//!
//! The buffers of a folio are linked one to the next, the last to the first. To reach the nth one,
//! a walk visits n of them: cheap for a few, too much for the hundreds of a large folio. An index
//! of every [`EVERY`]th link leaves a few steps to walk, wherever the link is:
//!
//! ```text
//!     head -> 1 -> 2 -> 3 -> 4 -> 5 -> 6 -> 7 -> 8 -> 9 -> ... -> head
//!                            |                   |
//!                        index[0]            index[1]
//! ```
//!
//! The index stays true for as long as nobody relinks the ring.

/// The distance of the links in an index.
///
/// At 4 the index of a 2 MiB folio is 1 KiB for 4 KiB blocks and 4 KiB for 1 KiB blocks, 2 % of the
/// buffers themselves, and three steps are the most.
pub const EVERY: usize = 4;

/// How many links are cheaper to walk than to index.
pub const FEW: usize = 16;

/// A link of a ring.
pub trait Link: Copy {
    /// The link after this one; the first one after the last.
    fn next(self) -> Self;
}

/// How many links an index has, of a ring of `len` links. None for a ring of a [`FEW`].
#[inline]
pub const fn index_len(len: usize) -> usize {
    if len > FEW {
        len.wrapping_sub(1) / EVERY
    } else {
        0
    }
}

/// The links of an index, in order, of a ring of `len` links. `head` is link zero.
pub fn index<L: Link>(head: L, len: usize) -> impl Iterator<Item = L> {
    (0..index_len(len)).scan(head, |at, _| {
        *at = walk(*at, EVERY);
        Some(*at)
    })
}

/// The link `nth` of a ring, counted from `head`, which is link zero. Walks where the index, which
/// may be empty, does not reach.
///
/// # Examples
///
/// ```
/// use kernel::writeback::buffer_index::{index, seek, Link};
///
/// /// A link of a ring of 512.
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// struct Nth(usize);
///
/// impl Link for Nth {
///     fn next(self) -> Self {
///         Self((self.0 + 1) % 512)
///     }
/// }
///
/// let mut entries = KVec::new();
/// for link in index(Nth(0), 512) {
///     entries.push(link, GFP_KERNEL)?;
/// }
/// assert_eq!(seek(Nth(0), &entries, 301), Nth(301));
/// # Ok::<(), Error>(())
/// ```
#[inline(always)]
pub fn seek<L: Link>(head: L, index: &[L], nth: usize) -> L {
    let place = (nth / EVERY).wrapping_sub(1);
    match index.get(place) {
        Some(&at) => walk(at, nth % EVERY),
        None => walk(head, nth),
    }
}

#[inline(always)]
fn walk<L: Link>(mut at: L, steps: usize) -> L {
    for _ in 0..steps {
        at = at.next();
    }
    at
}
