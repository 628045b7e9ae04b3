// SPDX-License-Identifier: GPL-2.0

//! Completions that are a number, and a list of them.

use std::collections::VecDeque;
use writeback::batch::List;

#[derive(Debug, Default)]
pub(crate) struct Nodes(pub(crate) VecDeque<usize>);

impl List for Nodes {
    type Item = usize;

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn first(&self) -> usize {
        self.0.front().copied().unwrap_or(0)
    }

    fn take(&mut self) -> Self {
        std::mem::take(self)
    }

    fn push(&mut self, number: usize) {
        self.0.push_back(number);
    }

    fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }
}
