// SPDX-License-Identifier: GPL-2.0

//! Writeback of the pages that DONTCACHE writes have dirtied. Callers are `generic_write_sync()`,
//! the flusher, and the code that moves an inode between the lists of a wb or creates a wb.

pub mod dontcache_kick;
pub mod dontcache_round;
