// SPDX-License-Identifier: GPL-2.0

//! Which CPU holds which cache line, if caches were infinite, and what moves lines between CPUs.
//!
//! A transfer is an access that a CPU cannot serve from its own cache because of another CPU:
//!
//! - The CPU loads or stores in a line that another CPU has modified.
//! - The CPU stores in a line that other CPUs hold.
//!
//! The first access to a line by any CPU is not a transfer. A handover is a transfer for a store to a
//! line that another CPU has stored to last: several CPUs write that line.
//!
//! Unit tests: the file is also the crate of a test program of its own, see Cargo.toml.

use std::{
    collections::HashMap,
    sync::{
        atomic::{AtomicU64, Ordering::Relaxed},
        Mutex,
    },
};

/// The most CPUs that a line has room for.
pub(crate) const MAX_CPUS: u32 = 8;

const LINE_BITS: u32 = 6;
/// All addresses of the kernel begin with as many ones.
const SIGN_BITS: u32 = 16;
const HOLDER_BITS: u32 = MAX_CPUS;
const WRITER_BITS: u32 = 4;
const STATE_BITS: u32 = HOLDER_BITS + WRITER_BITS + 1;
const SLOT_BITS: u32 = 23;

/// What a CPU does with a line.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Access {
    Load,
    /// A store, or what an atomic instruction does: it takes the line for itself before it loads.
    Store,
}

/// What an access of a line by a CPU needs from other CPUs.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Needs {
    Nothing,
    Transfer,
    Handover,
}

/// The state of a line in the low bits of a word whose other bits are the line's number.
///
/// Bits 0 to 7 are the CPUs that hold the line. Bits 8 to 11 are one more than the CPU that has
/// stored last, zero if none has. Bit 12 says that this CPU alone holds the line, modified.
#[derive(Clone, Copy, PartialEq)]
struct Line(u64);

impl Line {
    const MODIFIED: u64 = 1 << (STATE_BITS - 1);

    fn number(self) -> u64 {
        self.0 >> STATE_BITS
    }

    /// A CPU accesses the line: the state afterwards, and what the access needs.
    fn access(self, cpu: u32, access: Access) -> (Self, Needs) {
        let own = 1 << cpu;
        let writer = (self.0 >> HOLDER_BITS) & ((1 << WRITER_BITS) - 1);
        let others = self.0 & ((1 << HOLDER_BITS) - 1) & !own != 0;
        let modified = self.0 & Self::MODIFIED != 0;
        match access {
            Access::Load if others && modified => {
                (Self((self.0 & !Self::MODIFIED) | own), Needs::Transfer)
            }
            Access::Load => (Self(self.0 | own), Needs::Nothing),
            Access::Store => {
                let us = u64::from(cpu) + 1;
                let state = Self::MODIFIED | (us << HOLDER_BITS) | own;
                let needs = match (others, writer) {
                    (false, _) => Needs::Nothing,
                    (true, by) if by == 0 || by == us => Needs::Transfer,
                    (true, _) => Needs::Handover,
                };
                (Self((self.number() << STATE_BITS) | state), needs)
            }
        }
    }
}

/// How often a function caused the transfer of a line, and how many of these were handovers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Count {
    pub(crate) transfers: u64,
    pub(crate) handovers: u64,
}

/// All lines of the guest's kernel: a hash table that takes no lock unless there is a transfer.
pub(crate) struct Directory {
    lines: Vec<AtomicU64>,
    counts: Mutex<HashMap<(usize, u64), Count>>,
}

impl Directory {
    pub(crate) fn new() -> Self {
        Self::with_room(1 << SLOT_BITS)
    }

    /// A directory for at most so many lines.
    fn with_room(lines: usize) -> Self {
        Self {
            lines: (0..lines).map(|_| AtomicU64::new(0)).collect(),
            counts: Mutex::default(),
        }
    }

    /// The word of a line. It is made when the line is first accessed.
    fn word(&self, line: u64) -> &AtomicU64 {
        let start = line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - SLOT_BITS);
        for probe in 0..self.lines.len() {
            let word = &self.lines[(start as usize + probe) % self.lines.len()];
            let mut found = word.load(Relaxed);
            if found == 0 {
                let ours = line << STATE_BITS;
                match word.compare_exchange(0, ours, Relaxed, Relaxed) {
                    Ok(_) => return word,
                    Err(theirs) => found = theirs,
                }
            }
            if Line(found).number() == line {
                return word;
            }
        }
        panic!(
            "the kernel has accessed more than {} cache lines",
            self.lines.len()
        );
    }

    /// A function that runs on `cpu` accesses an address of the kernel.
    pub(crate) fn access(&self, cpu: u32, function: usize, address: u64, access: Access) {
        let line = (address << SIGN_BITS) >> (SIGN_BITS + LINE_BITS);
        let word = self.word(line);
        let mut before = Line(word.load(Relaxed));
        let needs = loop {
            let (after, needs) = before.access(cpu, access);
            if after == before {
                break needs;
            }
            match word.compare_exchange_weak(before.0, after.0, Relaxed, Relaxed) {
                Ok(_) => break needs,
                Err(other) => before = Line(other),
            }
        };
        if needs != Needs::Nothing {
            let mut counts = self.counts.lock().unwrap();
            let count = counts.entry((function, line)).or_default();
            count.transfers += 1;
            count.handovers += u64::from(needs == Needs::Handover);
        }
    }

    /// Forgets the transfers, but not who holds what.
    pub(crate) fn forget_counts(&self) {
        self.counts.lock().unwrap().clear();
    }

    /// The transfers: the function, the address of the line, how many.
    pub(crate) fn counts(&self) -> Vec<(usize, u64, Count)> {
        let sign = u64::MAX << (u64::BITS - SIGN_BITS);
        let counts = self.counts.lock().unwrap();
        counts
            .iter()
            .map(|(&(function, line), &count)| (function, sign | (line << LINE_BITS), count))
            .collect()
    }
}

/// Whether an instruction of x86 that accesses memory is atomic: it has a lock prefix or is an xchg.
pub(crate) fn is_atomic(instruction: &[u8]) -> bool {
    const OTHER_PREFIXES: [u8; 10] = [0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65, 0x66, 0x67, 0xf2, 0xf3];
    let is_prefix = |byte: &u8| OTHER_PREFIXES.contains(byte) || byte >> 4 == 4;
    let first = instruction.iter().find(|byte| !is_prefix(byte));
    matches!(first, Some(0xf0 | 0x86 | 0x87))
}

#[cfg(test)]
mod tests {
    use super::{Access::*, *};
    use std::{sync::Barrier, thread};

    const PLACE: u64 = 0xffff_8880_1234_5678;

    /// All transfers and handovers after these accesses of one line.
    fn after(accesses: &[(u32, Access)]) -> (u64, u64) {
        let directory = Directory::new();
        for &(cpu, access) in accesses {
            directory.access(cpu, 0, PLACE, access);
        }
        sum(&directory)
    }

    fn sum(directory: &Directory) -> (u64, u64) {
        let counts = directory.counts();
        let add = |(transfers, handovers), &(_, _, count): &(usize, u64, Count)| {
            (transfers + count.transfers, handovers + count.handovers)
        };
        counts.iter().fold((0, 0), add)
    }

    #[test]
    fn a_cpu_alone_transfers_nothing() {
        assert_eq!(
            after(&[(3, Load), (3, Store), (3, Load), (3, Store)]),
            (0, 0)
        );
    }

    #[test]
    fn a_first_access_is_no_transfer() {
        assert_eq!(after(&[(0, Load), (1, Load), (7, Load)]), (0, 0));
    }

    #[test]
    fn a_modified_line_is_fetched_once() {
        assert_eq!(after(&[(0, Store), (1, Load)]), (1, 0));
        assert_eq!(
            after(&[(0, Store), (1, Load), (1, Load), (0, Load), (2, Load)]),
            (1, 0)
        );
    }

    #[test]
    fn a_store_invalidates_what_others_hold() {
        assert_eq!(after(&[(0, Load), (1, Store)]), (1, 0));
        assert_eq!(
            after(&[(0, Load), (1, Load), (2, Store), (2, Store)]),
            (1, 0)
        );
    }

    #[test]
    fn one_writer_with_a_reader_hands_nothing_over() {
        assert_eq!(
            after(&[(0, Store), (1, Load), (0, Store), (1, Load)]),
            (3, 0)
        );
    }

    #[test]
    fn writers_in_turn_hand_the_line_over() {
        assert_eq!(
            after(&[(0, Store), (1, Store), (0, Store), (0, Store)]),
            (2, 2)
        );
        // The load makes the line shared, and the writer of before still counts.
        assert_eq!(after(&[(0, Store), (1, Load), (1, Store)]), (2, 1));
    }

    #[test]
    fn lines_and_functions_are_told_apart() {
        let directory = Directory::new();
        for (cpu, function) in [(0, 10), (1, 11), (2, 12)] {
            directory.access(cpu, function, PLACE, Store);
            directory.access(cpu, function, PLACE + 64, Load);
        }
        let mut counts = directory.counts();
        counts.sort_by_key(|&(function, _, _)| function);
        let one = Count {
            transfers: 1,
            handovers: 1,
        };
        let line = PLACE & !63;
        assert_eq!(counts, [(11, line, one), (12, line, one)]);
    }

    #[test]
    fn counts_are_forgotten_but_not_the_holders() {
        let directory = Directory::new();
        directory.access(0, 0, PLACE, Store);
        directory.access(1, 0, PLACE, Store);
        directory.forget_counts();
        assert_eq!(sum(&directory), (0, 0));
        directory.access(0, 0, PLACE, Store);
        assert_eq!(sum(&directory), (1, 1));
    }

    #[test]
    fn lines_of_one_slot_are_told_apart() {
        let directory = Directory::with_room(8);
        let lines = (0..8).map(|n| PLACE + 64 * n);
        for (cpu, line) in (0..8).zip(lines.clone()) {
            directory.access(cpu, 0, line, Store);
        }
        assert_eq!(sum(&directory), (0, 0), "each CPU has a line of its own");
        for line in lines {
            directory.access(0, 0, line, Store);
        }
        assert_eq!(sum(&directory), (7, 7));
    }

    #[test]
    #[should_panic(expected = "more than 8 cache lines")]
    fn too_many_lines_are_refused() {
        let directory = Directory::with_room(8);
        for n in 0..9 {
            directory.access(0, 0, PLACE + 64 * n, Load);
        }
    }

    #[test]
    fn threads_lose_no_holder_of_a_line() {
        const LINES: u64 = 1 << 18;
        let directory = Directory::with_room(2 * LINES as usize);
        let start = Barrier::new(4);
        thread::scope(|scope| {
            for cpu in 0..4 {
                let (directory, start) = (&directory, &start);
                scope.spawn(move || {
                    start.wait();
                    for n in 0..LINES {
                        directory.access(cpu, 0, PLACE + 64 * n, Load);
                    }
                });
            }
        });
        let holders = |n| {
            let line = ((PLACE + 64 * n) << SIGN_BITS) >> (SIGN_BITS + LINE_BITS);
            directory.word(line).load(Relaxed) & ((1 << HOLDER_BITS) - 1)
        };
        let lost = (0..LINES).filter(|&n| holders(n) != 0b1111).count();
        assert_eq!(lost, 0);
    }

    #[test]
    fn atomic_instructions_are_known() {
        for atomic in [
            &[0xf0, 0xff, 0x00][..],         // lock incl (%rax)
            &[0xf0, 0x48, 0x0f, 0xb1, 0x0f], // lock cmpxchg %rcx,(%rdi)
            &[0x3e, 0xf0, 0x0f, 0xc1, 0x07], // ds lock xadd %eax,(%rdi)
            &[0x48, 0x87, 0x07],             // xchg %rax,(%rdi)
            &[0x86, 0x07],                   // xchg %al,(%rdi)
        ] {
            assert!(is_atomic(atomic), "{atomic:x?}");
        }
        for other in [
            &[0xff, 0x00][..],                     // incl (%rax)
            &[0x65, 0x48, 0x0f, 0xb1, 0x0f],       // cmpxchg %rcx,%gs:(%rdi)
            &[0x8b, 0x87, 0xf0, 0x00, 0x00, 0x00], // mov 0xf0(%rdi),%eax
            &[0x48, 0x89, 0x07],                   // mov %rax,(%rdi)
            &[0xc6, 0x07, 0xf0],                   // movb $0xf0,(%rdi)
        ] {
            assert!(!is_atomic(other), "{other:x?}");
        }
    }
}
