// SPDX-License-Identifier: GPL-2.0

//! The writeback core: decisions, without the kernel types that they are about.
//!
//! Everything below this module is plain Rust on [`core`] alone. The kernel's types come in through
//! traits, so that the same files are compiled into the kernel and, on the host, under unit tests,
//! property tests and a model checker.

#![forbid(unsafe_code)]

pub mod account;
pub mod batch;
pub mod block_range;
pub mod buffer_index;
pub mod buffer_walk;
pub mod kick;
pub mod later;
pub mod pace;
pub mod policy;
pub mod queue;
pub mod round;
pub mod together;
