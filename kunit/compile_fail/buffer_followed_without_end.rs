// SPDX-License-Identifier: GPL-2.0
// compile error: E0624

//! A cursor walks a ring, and makes one turn at most.

use kernel::buffer_head::BufferHead;

/// Only a cursor has access to the next buffer.
pub fn misuse(mut buffer: &BufferHead) {
    loop {
        buffer = buffer.next();
    }
}
