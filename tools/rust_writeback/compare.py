# SPDX-License-Identifier: GPL-2.0
"""make run: both cores in turn under the same load, and a table of what they did."""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import jobs, kernel, machine, paths, report, results, summary, table, vm
from .errors import Failure, run_main
from .progress import Bar
from .steps import write_whole
from .vmoptions import amount

DRIVER = paths.TOOLS / "guest" / "bench.py"
FILE_SYSTEM = "xfs"
ORDER = ("c", "rust")
COMPARED = ("buffered", "dontcache")
SCALE = "direct"
"""Direct writes meet neither core. They give the scale, for which one pair is enough."""


class Stream:
    """Collects the guest's output and counts its lines as they come."""

    def __init__(self, bar: Bar) -> None:
        self.bar = bar
        self.data = bytearray()

    def __call__(self, data: bytes) -> None:
        self.data += data
        self.bar.advance(data.count(b"\n"))


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The command line of the comparison."""
    parser = argparse.ArgumentParser(prog="run", description=__doc__)
    parser.add_argument("--pairs", type=int, default=3, help="boots of each core (default: %(default)s)")
    parser.add_argument("--direct-pairs", type=int, default=1, help="pairs that write directly, too (default: 1)")
    parser.add_argument("--mem", default="192M", help="memory of the guest (default: %(default)s)")
    parser.add_argument("--bps", default="112M", help="bytes a second that the drive takes (default: %(default)s)")
    parser.add_argument("--interval", type=float, default=0.1, help="seconds between samples (default: %(default)s)")
    parser.add_argument("--report", type=Path, default=paths.BUILD / "report", help="where the report goes")
    options = parser.parse_args(arguments)
    if options.pairs < 1:
        raise Failure("--pairs takes 1 or more; three are the least that give an interval worth having", 2)
    return options


def boot(options: argparse.Namespace, core: str, steps: Sequence[results.Step], bar: Bar) -> tuple[Any, bytes]:
    """Boot one core, and run all steps in it."""
    plan = {"steps": [step.plan() for step in steps], "interval": options.interval, "fstype": FILE_SYSTEM}
    stream = Stream(bar)
    wanted = vm.VmOptions(
        core=core,
        smp=2,
        mem=options.mem,
        nvme=vm.NvmeOptions(size="2G", bps=options.bps),
    )
    result = vm.run(wanted, ["python3", "-c", DRIVER.read_text(), results.to_text(plan)], stdout=stream)
    if result.core != core:
        raise Failure(f"the kernel ran the {result.core} core instead of {core}; the run is not reported")
    if result.status and b'"kind": "refused"' not in stream.data:
        said = result.stderr.decode(errors="replace").strip().splitlines()
        raise Failure(f"the guest's driver ended with status {result.status}: {said[-1] if said else result.console}")
    return result, bytes(stream.data)


def measure(options: argparse.Namespace, scenarios: Sequence[jobs.Scenario]) -> tuple[list[Any], list[Any]]:
    """All boots: what is known of each, and the measurements of all."""
    boots: list[dict[str, Any]] = []
    measurements: list[results.Measurement] = []
    plans = []
    for pair in range(1, options.pairs + 1):
        modes = [*COMPARED, SCALE] if pair <= options.direct_pairs else COMPARED
        plans += [(pair, core, results.plan(scenarios, modes)) for core in ORDER]
    total = sum(len(steps) + 2 for _, _, steps in plans)
    with Bar(f"{options.pairs} boots of each core", total, interval=10) as bar:
        for pair, core, steps in plans:
            begin = time.monotonic()
            result, output = boot(options, core, steps, bar)
            write_whole(options.report / "raw" / f"{pair}-{core}.jsonl", output)
            lines = results.read_lines(output)
            measurements += results.accept(lines, steps, pair, core)
            boots.append(
                {
                    "pair": pair,
                    "core": core,
                    "seconds": round(time.monotonic() - begin, 1),
                    "boot_seconds": round(result.boot_seconds, 1),
                    "accelerator": result.accel,
                    "kernel": result.kernel,
                    "kernel_warned": result.warned,
                    "qemu_command": result.qemu_command,
                    "qemu_version": result.qemu_version,
                    "guest": lines[0],
                    "steps": [
                        {key: value for key, value in line.items() if key not in ("fio", "samples")}
                        for line in lines[1:-1]
                    ],
                }
            )
    if len({entry["accelerator"] for entry in boots}) != 1:
        raise Failure("the boots had different accelerators; the run is not reported")
    return boots, measurements


def revision() -> str:
    """The git revision of the project, marked when there is more than it says."""
    command = ["git", "-c", f"safe.directory={paths.PROJECT}", "-C", str(paths.PROJECT)]
    try:
        head = subprocess.run([*command, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout
        changed = subprocess.run([*command, "status", "--porcelain"], check=True, capture_output=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head.strip()[:12] + ("+changes" if changed.strip() else "")


def host_cpu() -> str:
    """The name of the host's CPU."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def describe(
    options: argparse.Namespace,
    scenarios: Sequence[jobs.Scenario],
    fio: str,
    boots: Sequence[dict[str, Any]],
    arguments: Sequence[str],
) -> dict[str, Any]:
    """All that somebody needs who wants to repeat the run."""
    first = boots[0]
    return {
        "date": time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()),
        "command": " ".join(["make run" if not arguments else "python3 -m rust_writeback run", *arguments]),
        "revision": revision(),
        "pairs": options.pairs,
        "direct_pairs": min(options.pairs, options.direct_pairs),
        "kernel": first["guest"]["kernel"],
        "kernel_command_lines": {core: _command_line(boots, core) for core in ORDER},
        "fio": fio,
        "qemu": first["qemu_version"],
        "accelerator": first["accelerator"],
        "cpus": first["guest"]["cpus"],
        "memory": options.mem,
        "memory_seen_by_the_guest_bytes": first["guest"]["memory"],
        "drive": f"{options.bps}iB/s",
        "file_system": FILE_SYSTEM,
        "sampling_interval_seconds": options.interval,
        "host_cpu": host_cpu(),
        "host_cpus": os.cpu_count(),
        "host_kernel": platform.release(),
        "host_load": " ".join(f"{load:.1f}" for load in os.getloadavg()),
        "modes": jobs.MODES,
        "scenarios": [
            {
                "name": scenario.name,
                "title": scenario.title,
                "jobs": scenario.jobs,
                "bytes_written": scenario.written,
                "bytes_of_files": scenario.footprint,
                "text": scenario.text,
            }
            for scenario in scenarios
        ],
    }


def _command_line(boots: Sequence[dict[str, Any]], core: str) -> str:
    return next(str(entry["guest"]["cmdline"]) for entry in boots if entry["core"] == core)


def build() -> None:
    """Whatever the comparison needs and is not there yet."""
    kernel.ensure()


def main(arguments: list[str]) -> int:
    """Compare, print, write the report."""
    machine.polite()
    options = parse(arguments)
    fio = jobs.require_uncached()
    scenarios = jobs.load()
    for scenario in scenarios:
        if scenario.footprint <= amount(options.mem):
            raise Failure(f"{scenario.name} fits into {options.mem} of memory; give the guest less with --mem", 2)
    build()
    begin = time.monotonic()
    boots, measurements = measure(options, scenarios)
    groups = summary.summarize(measurements)
    setup = describe(options, scenarios, fio, boots, arguments)
    setup["seconds"] = round(time.monotonic() - begin)
    table.show(groups)
    print(table.LEGEND)
    for verdict in summary.verdicts(groups):
        print(verdict)
    report.write(options.report, setup, boots, measurements, groups)
    place = os.path.relpath(options.report / "index.html", paths.PROJECT)
    print(f"{time.monotonic() - begin:.0f} s, {setup['accelerator']}; the report is {place}")
    return 0


if __name__ == "__main__":
    sys.exit(run_main(lambda: main(sys.argv[1:])))
