// SPDX-License-Identifier: GPL-2.0

//! A plugin of QEMU that counts what the kernel of the guest does between two marks.
//!
//! A mark is an instruction of a user program that has no effect: a nop with a magic number (see
//! `tools/guest/price.c`). The plugin starts to count at [`START`] and appends a region to its
//! output file at [`END`]. It has two modes:
//!
//! - Instructions of each function of the kernel. A region is the line `region` and lines `COUNT
//!   FUNCTION`. The counts are exact for one CPU, and with `thread=multi` for several CPUs.
//! - With `lines=on`, transfers of cache lines between CPUs. A region is the line `region` and
//!   lines `TRANSFERS HANDOVERS FUNCTION ADDRESS`, where the address is that of the line. This
//!   needs `thread=multi`: one thread for all CPUs would report wrong numbers of CPUs.
//!
//! Arguments: `symbols=` the kernel's System.map, `out=` the output file, `skip=` names of
//! functions, separated by `+`, whose memory accesses are not tracked.

mod cache;

use cache::{Access, Directory, MAX_CPUS};
use qemu_plugin_sys as qemu;
use std::{
    cell::Cell,
    collections::{HashMap, HashSet},
    ffi::{c_char, c_int, c_uint, c_void, CStr},
    fs::{self, File},
    io::{BufWriter, Write},
    slice,
    sync::{
        atomic::{AtomicBool, Ordering::Relaxed},
        Mutex, OnceLock,
    },
    thread,
};

/// The version of QEMU's plugin interface that this is made for: QEMU reads it.
#[no_mangle]
pub static qemu_plugin_version: c_int = 4;

/// `nopl` with this displacement starts a region.
const START: u32 = 0x7072_6963;
/// `nopl` with this displacement ends a region.
const END: u32 = START + 1;
/// The bytes of `nopl disp32(%rax)` before its displacement.
const NOPL: [u8; 3] = [0x0f, 0x1f, 0x80];

/// Accesses of memory after which a CPU of the guest yields: a fraction of a write.
const TURN: u32 = 100;

/// The lowest address of the kernel's half.
const KERNEL: u64 = 1 << 63;

/// The functions of the kernel, by their addresses.
struct Symbols {
    starts: Vec<u64>,
    names: Vec<String>,
}

impl Symbols {
    /// Reads the functions of a System.map, without the names of its sections.
    fn parse(text: &str) -> Self {
        let mut found: Vec<(u64, &str)> = text
            .lines()
            .filter_map(|line| {
                let (address, rest) = line.split_once(' ')?;
                let (kind, name) = rest.split_once(' ')?;
                let address = u64::from_str_radix(address, 16).ok()?;
                let section = name.ends_with("_text_start") || name.ends_with("_text_end");
                (matches!(kind, "t" | "T" | "w" | "W") && address >= KERNEL && !section)
                    .then_some((address, name))
            })
            .collect();
        found.sort_by_key(|&(address, _)| address);
        found.dedup_by_key(|&mut (address, _)| address);
        Self {
            starts: found.iter().map(|&(address, _)| address).collect(),
            names: found.iter().map(|&(_, name)| name.to_owned()).collect(),
        }
    }

    /// The number of the function that has this address. Zero is also what lies below all functions.
    fn number(&self, address: u64) -> usize {
        self.starts
            .partition_point(|&start| start <= address)
            .saturating_sub(1)
    }
}

/// The counters of a vCPU: one for each function. QEMU keeps them, and translated code adds to them.
#[derive(Clone, Copy)]
struct Counters(*mut qemu::qemu_plugin_scoreboard);

// SAFETY: The scoreboard is QEMU's, which lets every thread use it.
unsafe impl Send for Counters {}
// SAFETY: The same.
unsafe impl Sync for Counters {}

impl Counters {
    /// The counter of a function, as QEMU wants it named.
    fn entry(self, function: usize) -> qemu::qemu_plugin_u64 {
        qemu::qemu_plugin_u64 {
            score: self.0,
            offset: function * size_of::<u64>(),
        }
    }
}

/// What the plugin knows, from its installation on.
struct Plugin {
    symbols: Symbols,
    counters: Counters,
    skipped: HashSet<usize>,
    directory: Option<Directory>,
    output: Mutex<BufWriter<File>>,
    /// Whether a region has begun: accesses are tracked from the first one on.
    tracking: AtomicBool,
}

static PLUGIN: OnceLock<Plugin> = OnceLock::new();

impl Plugin {
    /// All functions and counts of this region, zeroes omitted.
    fn counts(&self) -> Vec<(usize, u64)> {
        (0..self.symbols.names.len())
            .map(|number| {
                let entry = self.counters.entry(number);
                // SAFETY: The scoreboard lives as long as QEMU, and has an entry for each function.
                (number, unsafe { qemu::qemu_plugin_u64_sum(entry) })
            })
            .filter(|&(_, count)| count > 0)
            .collect()
    }

    /// Begins a region with all counts at zero.
    fn start(&self) {
        if let Some(directory) = &self.directory {
            directory.forget_counts();
            self.tracking.store(true, Relaxed);
            return;
        }
        // SAFETY: The arguments are numbers of vCPUs and functions that exist.
        unsafe {
            for vcpu in 0..qemu::qemu_plugin_num_vcpus() as c_uint {
                let counts = qemu::qemu_plugin_scoreboard_find(self.counters.0, vcpu).cast::<u64>();
                slice::from_raw_parts_mut(counts, self.symbols.names.len()).fill(0);
            }
        }
    }

    /// Writes the region that ends here.
    fn end(&self) -> std::io::Result<()> {
        let mut output = self.output.lock().unwrap();
        writeln!(output, "region")?;
        if let Some(directory) = &self.directory {
            for (function, line, count) in directory.counts() {
                let name = &self.symbols.names[function];
                writeln!(
                    output,
                    "{} {} {name} {line:x}",
                    count.transfers, count.handovers
                )?;
            }
        } else {
            // Several functions may have the same name: static ones of different files.
            let mut by_name = HashMap::new();
            for (number, count) in self.counts() {
                *by_name.entry(&self.symbols.names[number]).or_insert(0) += count;
            }
            for (name, count) in by_name {
                writeln!(output, "{count} {name}")?;
            }
        }
        output.flush()
    }

    /// Prepares the counting of a block of instructions of the kernel.
    ///
    /// # Safety
    ///
    /// `tb` must be the block that QEMU is translating.
    unsafe fn instrument(&self, tb: *mut qemu::qemu_plugin_tb) {
        // SAFETY: The caller promises the block; each number is below that of its instructions.
        unsafe {
            let mut run: Option<(usize, *mut qemu::qemu_plugin_insn, u64)> = None;
            for n in 0..qemu::qemu_plugin_tb_n_insns(tb) {
                let insn = qemu::qemu_plugin_tb_get_insn(tb, n);
                let function = self.symbols.number(qemu::qemu_plugin_insn_vaddr(insn));
                if self.directory.is_some() {
                    self.track(insn, function);
                    continue;
                }
                match &mut run {
                    Some((same, _, count)) if *same == function => *count += 1,
                    _ => {
                        self.count(run.take());
                        run = Some((function, insn, 1));
                    }
                }
            }
            self.count(run);
        }
    }

    /// Counts a run of instructions of one function whenever its first one is executed.
    ///
    /// # Safety
    ///
    /// The instruction must belong to the block that QEMU is translating.
    unsafe fn count(&self, run: Option<(usize, *mut qemu::qemu_plugin_insn, u64)>) {
        if let Some((function, insn, count)) = run {
            // SAFETY: The caller promises the instruction; the counter exists.
            unsafe {
                qemu::qemu_plugin_register_vcpu_insn_exec_inline_per_vcpu(
                    insn,
                    qemu::qemu_plugin_op::QEMU_PLUGIN_INLINE_ADD_U64,
                    self.counters.entry(function),
                    count,
                );
            }
        }
    }

    /// Tracks the memory accesses of an instruction.
    ///
    /// # Safety
    ///
    /// The instruction must belong to the block that QEMU is translating.
    unsafe fn track(&self, insn: *mut qemu::qemu_plugin_insn, function: usize) {
        if self.skipped.contains(&function) {
            return;
        }
        let mut bytes = [0u8; 15];
        // SAFETY: The caller promises the instruction, and the buffer has as many bytes. What the
        // callback gets is a number.
        unsafe {
            let size = qemu::qemu_plugin_insn_data(insn, bytes.as_mut_ptr().cast(), bytes.len());
            let atomic = usize::from(cache::is_atomic(&bytes[..size]));
            qemu::qemu_plugin_register_vcpu_mem_cb(
                insn,
                Some(on_access),
                qemu::qemu_plugin_cb_flags::QEMU_PLUGIN_CB_NO_REGS,
                qemu::qemu_plugin_mem_rw::QEMU_PLUGIN_MEM_RW,
                ((function << 1) | atomic) as *mut c_void,
            );
        }
    }
}

/// The magic number of an instruction, if it is a nop that has one.
///
/// # Safety
///
/// The instruction must belong to the block that QEMU is translating.
unsafe fn magic(insn: *mut qemu::qemu_plugin_insn) -> Option<u32> {
    let mut bytes = [0u8; 7];
    // SAFETY: The caller promises the instruction, and the buffer has as many bytes.
    let size = unsafe { qemu::qemu_plugin_insn_data(insn, bytes.as_mut_ptr().cast(), bytes.len()) };
    let [a, b, c, number @ ..] = bytes;
    (size == bytes.len() && [a, b, c] == NOPL).then(|| u32::from_le_bytes(number))
}

/// QEMU translates a block.
unsafe extern "C" fn on_translation(_: qemu::qemu_plugin_id_t, tb: *mut qemu::qemu_plugin_tb) {
    let Some(plugin) = PLUGIN.get() else { return };
    // SAFETY: QEMU hands over the block that it is translating.
    unsafe {
        if qemu::qemu_plugin_tb_vaddr(tb) >= KERNEL {
            return plugin.instrument(tb);
        }
        for n in 0..qemu::qemu_plugin_tb_n_insns(tb) {
            let insn = qemu::qemu_plugin_tb_get_insn(tb, n);
            if let Some(number @ (START | END)) = magic(insn) {
                qemu::qemu_plugin_register_vcpu_insn_exec_cb(
                    insn,
                    Some(on_mark),
                    qemu::qemu_plugin_cb_flags::QEMU_PLUGIN_CB_NO_REGS,
                    number as usize as *mut c_void,
                );
            }
        }
    }
}

/// The guest executes a mark.
unsafe extern "C" fn on_mark(_vcpu: c_uint, number: *mut c_void) {
    let Some(plugin) = PLUGIN.get() else { return };
    if number as usize == START as usize {
        plugin.start();
    } else if let Err(error) = plugin.end() {
        eprintln!("price: the output cannot be written: {error}");
        std::process::abort();
    }
}

/// Lets the threads of other CPUs run after each [`TURN`] accesses of this one.
///
/// A host with fewer CPUs than the guest runs a CPU of the guest for milliseconds, which is dozens of
/// writes. Lines that CPUs share would then move much less often than between real CPUs.
fn take_turns() {
    thread_local!(static ACCESSES: Cell<u32> = const { Cell::new(0) });
    ACCESSES.set((ACCESSES.get() + 1) % TURN);
    if ACCESSES.get() == 0 {
        thread::yield_now();
    }
}

/// The guest's kernel accesses memory. The number is the function's, twice, and one more for an
/// atomic instruction.
unsafe extern "C" fn on_access(
    vcpu: c_uint,
    info: qemu::qemu_plugin_meminfo_t,
    address: u64,
    number: *mut c_void,
) {
    let Some(plugin) = PLUGIN.get() else { return };
    if address < KERNEL || !plugin.tracking.load(Relaxed) {
        return;
    }
    if let Some(directory) = &plugin.directory {
        let (function, atomic) = (number as usize >> 1, number as usize & 1 != 0);
        // SAFETY: The information is of this access.
        let store = atomic || unsafe { qemu::qemu_plugin_mem_is_store(info) };
        let access = if store { Access::Store } else { Access::Load };
        directory.access(vcpu, function, address, access);
        take_turns();
    }
}

/// Reads the arguments, or says what is wrong with them.
fn installed(arguments: &HashMap<&str, &str>, cpus: u32) -> Result<Plugin, String> {
    let lines = arguments.get("lines") == Some(&"on");
    if lines && cpus > MAX_CPUS {
        return Err(format!(
            "lines: {cpus} CPUs are too many; start at most {MAX_CPUS}"
        ));
    }
    let get = |name| {
        arguments
            .get(name)
            .copied()
            .ok_or(format!("the argument {name} is missing"))
    };
    let map = fs::read_to_string(get("symbols")?).map_err(|error| format!("symbols: {error}"))?;
    let symbols = Symbols::parse(&map);
    if symbols.names.is_empty() {
        return Err("symbols: there is no function of the kernel".into());
    }
    let output = File::create(get("out")?).map_err(|error| format!("out: {error}"))?;
    let wanted: HashSet<&str> = arguments
        .get("skip")
        .map(|names| names.split('+').collect())
        .unwrap_or_default();
    let skipped = (0..symbols.names.len())
        .filter(|&n| wanted.contains(symbols.names[n].as_str()))
        .collect();
    // SAFETY: QEMU makes room for as many counters for each vCPU.
    let counters = Counters(unsafe {
        qemu::qemu_plugin_scoreboard_new(symbols.names.len() * size_of::<u64>())
    });
    Ok(Plugin {
        symbols,
        counters,
        skipped,
        directory: lines.then(Directory::new),
        output: Mutex::new(BufWriter::new(output)),
        tracking: AtomicBool::new(false),
    })
}

/// QEMU loads the plugin: see the arguments above.
///
/// # Safety
///
/// For QEMU alone: `info` must be of a whole system, and `argv` must have `argc` strings.
#[no_mangle]
pub unsafe extern "C" fn qemu_plugin_install(
    id: qemu::qemu_plugin_id_t,
    info: *const qemu::qemu_info_t,
    argc: c_int,
    argv: *mut *mut c_char,
) -> c_int {
    let texts: Vec<String> = (0..argc as usize)
        .map(|n| {
            // SAFETY: The caller promises the strings.
            let text = unsafe { CStr::from_ptr(*argv.add(n)) };
            text.to_string_lossy().into_owned()
        })
        .collect();
    let arguments = texts
        .iter()
        .filter_map(|text| text.split_once('='))
        .collect();
    // SAFETY: The caller promises that this is about a system, of which QEMU then writes this part.
    let cpus = unsafe { (*info).__bindgen_anon_1.system.max_vcpus };
    match installed(&arguments, cpus.unsigned_abs()) {
        Ok(plugin) => {
            let _ = PLUGIN.set(plugin);
            // SAFETY: The callback has the type that QEMU expects.
            unsafe { qemu::qemu_plugin_register_vcpu_tb_trans_cb(id, Some(on_translation)) };
            0
        }
        Err(wrong) => {
            eprintln!("price: {wrong}");
            -1
        }
    }
}
