# SPDX-License-Identifier: GPL-2.0
"""Telling an oops, a panic and a hang apart by the kernel's words."""

import pytest
from rust_writeback.vm import console

OOPS = """\
[    3.1] BUG: kernel NULL pointer dereference, address: 0000000000000000
[    3.1] Oops: Oops: 0002 [#1] SMP NOPTI
[    3.2] Kernel panic - not syncing: Fatal exception
"""
HARD = "[   20.0] Kernel panic - not syncing: Hard LOCKUP\n"
LOCKED = """\
[   20.0] watchdog: CPU0: Watchdog detected hard LOCKUP on cpu 1
[   20.0] Sending NMI from CPU 0 to CPUs 1:
[   20.0] NMI backtrace for cpu 1
[   20.0] CPU: 1 UID: 0 PID: 0 Comm: swapper/1 Not tainted 7.3.4
[   20.0] RIP: 0010:{where}+0xb/0x10
[   20.0] Code: 48 8b
[   20.0] RSP: 0018:ffff888000987f10 EFLAGS: {flags}
[   20.0] NMI backtrace for cpu 0
[   20.0] CPU: 0 UID: 0 PID: 0 Comm: swapper/0 Not tainted 7.3.4
[   20.0] RIP: 0010:pv_native_safe_halt+0xb/0x10
[   20.0] Code: 48 8b
[   20.0] RSP: 0018:ffff888000987f10 EFLAGS: 00010206
"""
DEAF = LOCKED.format(where="pv_native_safe_halt", flags="00010212") + HARD


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        (OOPS, "oops", "NULL pointer"),
        ("kernel BUG at drivers/misc/lkdtm/bugs.c:105!\nKernel panic - not syncing: Fatal exception\n", "oops", "lkdtm"),
        ("[    2.0] Kernel panic - not syncing: sysrq triggered crash\n", "panic", "sysrq triggered crash"),
        ("Kernel panic - not syncing: softlockup: hung tasks\n", "hang", "softlockup"),
        ("rcu: INFO: rcu_preempt detected stalls\nKernel panic - not syncing: RCU Stall\n", "hang", "RCU Stall"),
        ("[  1.0] BUG: failure at mm/x.c:7/f()!\n[  1.0] Kernel panic - not syncing: BUG!\n", "oops", "mm/x.c:7"),
        ("Kernel panic - not syncing:\n", "panic", "not syncing"),
    ],
)
def test_kinds(text: str, kind: str, words: str) -> None:
    quiet = "[    0.0] Linux version 7.3\n[    0.1] Kernel command line: panic=-1 oops=panic\n"
    assert console.classify(quiet) is None and console.warning(quiet) is None
    found = console.classify(quiet + text)
    assert found and found[0] == kind and words in found[1]


@pytest.mark.parametrize(
    ("text", "cpu"),
    [
        (DEAF, "1"),
        (LOCKED.format(where="lkdtm_HARDLOCKUP", flags="00010212") + HARD, None),
        (LOCKED.format(where="pv_native_safe_halt", flags="00010012") + HARD, None),
    ],
)
def test_a_cpu_that_waits_for_its_timer_is_deaf(text: str, cpu: str | None) -> None:
    """One that runs, or that has its interrupts off, is locked up."""
    assert console.deaf_cpu(text) == cpu


@pytest.mark.parametrize(
    "line",
    [
        "BUG: KASAN: slab-use-after-free in f+0x1/0x2",
        "BUG: KCSAN: data-race in filemap_read / _RNvNtCs1_6kernel5folio3set",
        "BUG: KCSAN: data-race in rust_bio_endio / bio_endio",
        "UBSAN: array-index-out-of-bounds in fs/x.c:7:1",
        "WARNING: mm/x.c:7 at f+0x1/0x2, CPU#0: sh/88",
        "INFO: task fio:9 blocked for more than 120 seconds.",
        "[ BUG: Invalid wait context ]",
        "BUG: sleeping function called from invalid context at x.c:1",
        "BUG kmalloc-64 (Not tainted): Poison overwritten",
        "INFO: lockdep is turned off.",
        "kmemleak: 3 new suspected memory leaks (see /sys/kernel/debug/kmemleak)",
        "kmemleak: Kernel memory leak detector disabled",
        "259:0: 7 pages were counted as dirty dropbehind, but none is",
    ],
)
def test_reports_of_sanitizers(line: str) -> None:
    assert console.warning(f"[    0.0] Linux version 7.3\n[    1.0] {line}\n[    1.1] Call Trace:\n") == line


@pytest.mark.parametrize(
    "line",
    [
        "kmemleak: Kernel memory leak detector initialized (mem pool available: 15000)",
        "kasan: KernelAddressSanitizer initialized (generic)",
        "BUG: KCSAN: data-race in __filemap_add_folio / xas_find_marked",
        "lkdtm: Performing direct entry WARNING",
    ],
)
def test_lines_that_are_no_report(line: str) -> None:
    assert console.warning(f"[    1.0] {line}\n") is None
