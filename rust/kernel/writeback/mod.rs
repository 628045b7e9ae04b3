// SPDX-License-Identifier: GPL-2.0

//! The writeback core: decisions, without the kernel types that they concern.
//!
//! All code below this module is plain Rust on [`core`] alone. Traits connect it to the kernel's
//! types. So the same files are compiled into the kernel and, on the host, under unit tests,
//! property tests and a model checker.

#![forbid(unsafe_code)]

pub mod account;
pub mod block_range;
pub mod buffer_walk;
pub mod dropbehind;
pub mod kick;
pub mod round;
