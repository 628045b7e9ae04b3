// SPDX-License-Identifier: GPL-2.0

//! Finding the nth link of a ring without visiting those before it.
//!
//! The buffers of a folio are linked one to the next, the last to the first. To reach the nth one,
//! a walk visits n of them: cheap for a few, too much for the hundreds of a large folio. So a link
//! has room for a second pointer, and [`index`] makes a binary tree of the ring. The links, in
//! their order, are the tree's nodes in preorder: of a subtree of `size` links, the first is the
//! root, the next `size / 2` are its near subtree, the rest are its far one.
//!
//! ```text
//!     root ---next---> near subtree (size / 2 links) ... far subtree (the rest)
//!       \______________________skip______________________/
//! ```
//!
//! The near subtree begins at the root's next link, and the second pointer leads to the far one,
//! so [`seek`] halves what is left with every step. The tree lives in the links: it is not
//! allocated, cannot fail, and is gone when they are. It stays true for as long as nobody relinks
//! the ring.

/// How many links are cheaper to walk than to index.
pub const FEW: usize = 16;

/// A subtree of no more than this and its root is walked.
const LEAF: usize = 8;

/// A link of a ring.
pub trait Link: Copy {
    /// The link after this one; the first one after the last.
    fn next(self) -> Self;

    /// The link that was set, if one was.
    fn skip(self) -> Option<Self>;

    /// Sets the link that [`skip`](Self::skip) is to give.
    fn set_skip(self, far: Self);
}

/// Makes the links of a ring of `len` links findable. `head` is the first.
///
/// Does nothing for a ring of a [`FEW`] links. Visits each link once.
pub fn index<L: Link>(head: L, len: usize) {
    if len > FEW {
        index_subtree(head, len);
    }
}

/// Indexes the subtree of `size` links at `root`, and returns the link after it.
///
/// Calls itself for subtrees of half the size: as deep as the logarithm of the ring's length.
fn index_subtree<L: Link>(mut root: L, mut size: usize) -> L {
    while size > LEAF + 1 {
        let near = size / 2;
        let far = index_subtree(root.next(), near);
        root.set_skip(far);
        root = far;
        size = size.wrapping_sub(near).wrapping_sub(1);
    }
    for _ in 0..size {
        root = root.next();
    }
    root
}

/// The link `nth` of a ring of `len` links, counted from `head`, which is link zero.
///
/// Where there is no index, it walks.
#[inline(always)]
pub fn seek<L: Link>(head: L, len: usize, nth: usize) -> L {
    let (mut at, mut size, mut ahead) = (head, len, nth);
    while ahead > LEAF {
        let near = size / 2;
        if ahead <= near {
            at = at.next();
            ahead = ahead.wrapping_sub(1);
            size = near;
        } else if let Some(far) = at.skip() {
            at = far;
            ahead = ahead.wrapping_sub(near).wrapping_sub(1);
            size = size.wrapping_sub(near).wrapping_sub(1);
        } else {
            break;
        }
    }
    while ahead > 0 {
        at = at.next();
        ahead = ahead.wrapping_sub(1);
    }
    at
}
