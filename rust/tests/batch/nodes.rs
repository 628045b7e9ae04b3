// SPDX-License-Identifier: GPL-2.0

//! Completions that have a number, and a list of them.

use std::collections::VecDeque;
use writeback::batch::{Completion, List};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub(crate) number: usize,
    pub(crate) can_wait: bool,
}

impl Completion for Node {
    fn can_wait(&self) -> bool {
        self.can_wait
    }
}

#[derive(Debug, Default)]
pub(crate) struct Nodes(pub(crate) VecDeque<Node>);

impl List for Nodes {
    type Item = Node;

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn is_single(&self) -> bool {
        self.0.len() == 1
    }

    fn first(&self) -> usize {
        self.0.front().map_or(0, |node| node.number)
    }

    fn take(&mut self) -> Self {
        std::mem::take(self)
    }

    fn push(&mut self, node: Node) {
        self.0.push_back(node);
    }

    fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }
}
