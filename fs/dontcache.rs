// SPDX-License-Identifier: GPL-2.0

//! Writeback of the pages that DONTCACHE writes dirty. `generic_write_sync()` and the flusher call
//! it.

pub mod dontcache_kick;
pub mod dontcache_round;
