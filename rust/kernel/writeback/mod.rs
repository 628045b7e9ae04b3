// SPDX-License-Identifier: GPL-2.0

//! The writeback core: decisions, without the kernel types that they are about.
//!
//! Everything below this module is plain Rust on [`core`] alone. It says when a folio counts as a
//! dirty dropbehind folio ([`account`]), how a writer and the flusher of one `bdi_writeback` hand a
//! request to each other ([`kick`]), when that is ([`pace`]), what the flusher does with it
//! ([`round`]), what else may be done after a write ([`policy`]), which buffers of its folio a
//! write handles ([`buffer_walk`], on [`block_range`] and [`ring`]), when a worker ends the bios of
//! a CPU ([`batch`]), which pages are dropped together ([`together`]), and when one is that could
//! not be at once ([`later`]). The kernel's types come in through traits, so that the same files
//! are compiled into the kernel and, on the host, under unit tests, property tests and a model
//! checker.

#![forbid(unsafe_code)]

pub mod account;
pub mod batch;
pub mod block_range;
pub mod buffer_walk;
pub mod kick;
pub mod later;
pub mod pace;
pub mod policy;
pub mod ring;
pub mod round;
pub mod together;
