# SPDX-License-Identifier: GPL-2.0
"""Makes the images that the guest boots from: packages of the build root, or of another architecture.

The root file system is an ext4 image that several guests may share, because they only read it. Every boot adds a
small initramfs with PID 1 and the command. Under icount the whole root is an initramfs instead, because a disk's
answers come from the host, at times that differ from run to run.
"""

import contextlib
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO

from .. import paths, steps
from ..arch import X86, Arch
from ..build import archive
from ..build.archive import Entry
from ..build.unpacked import Packages
from ..errors import Failure

INIT_SOURCE = paths.TOOLS / "guest" / "init.c"
INIT = paths.BUILD / "guest-init"
"""PID 1."""
IMAGE, WHOLE = paths.BUILD / "guest.img", paths.BUILD / "guest.cpio"
"""The root file system as an image, and as an initramfs."""
LOAD = paths.BUILD / "bin" / "load"
LOAD_SOURCE = paths.TOOLS / "guest" / "load.c"
SLOW_FLUSH_SOURCE = Path(__file__).parent / "slow_flush.c"
SLOW_FLUSH = paths.BUILD / "bin" / "slow_flush.so"

PACKAGES = """
    bash btrfs-progs coreutils dash diffutils e2fsprogs findutils fio gawk grep gzip hostname iproute2 jq kmod
    libc-bin liburing2 mawk mount procps python3 rpcbind sed tar util-linux xfsprogs
""".split()
"""What commands in the guest may rely on."""

INSTALLED = Path("/var/lib/dpkg/status")
"""Of the build root: it changes with every version of a package."""

LEAVE_OUT = re.compile(
    r"""/usr/share/(doc|man|info|locale|lintian|bash-completion|bug|menu|doc-base|i18n|zsh|pixmaps|applications)(/|$)
    | /usr/lib/(systemd|udev|tmpfiles\.d|sysusers\.d|valgrind|debug)(/|$)
    | /usr/lib/[^/]+-linux-gnu/(gconv|perl|perl-base)(/|$)
    | /usr/include | /usr/lib/gcc | /usr/lib/[^/]+-linux-gnu/[^/]+\.[ao]$
    | /usr/lib/python3\.\d+/(ensurepip|idlelib|turtledemo|lib2to3|pydoc_data)(/|$)
    | /usr/share/perl | /usr/bin/perl | /etc/(systemd|init\.d|cron|default|pam\.d|apparmor)
    """,
    re.VERBOSE,
)

SHARE = "share"
"""Where a guest finds a folder of the host, or the programs that are in its initramfs instead."""

FOLDERS = "dev proc sys run tmp root mnt share var var/tmp etc usr usr/local usr/local/bin".split()
UUID = "52555354-5752-4954-4542-41434b000000"

FOREIGN = ("base-files", "base-passwd", *PACKAGES, "libc6-dev", "libgcc-14-dev", "liburing-dev")
"""For a guest of another architecture: with what Debian takes for granted, and what its static programs are linked with."""


def tree(arch: Arch) -> Path:
    """The folder in which its packages are unpacked, of which nothing runs here; 0.1 and 0.35 GiB of 2026."""
    return Packages(f"guest-{arch.name}", f"the {arch.name} packages of the guest", FOREIGN, 0.7, arch.debian).folder()


XFSPROGS = Packages("xfsprogs", "an mkfs.xfs that knows zones", ("xfsprogs", "libc6"), 0.5, suite="forky")
"""trixie has none."""
ZONED = "opt/zoned"
"""Where a guest has its mkfs.xfs, with the libraries that it needs."""


def zoned() -> list[Entry]:
    """What a guest needs to make an xfs with zones."""
    *loader, program = XFSPROGS.command("sbin/mkfs.xfs")
    needs = subprocess.run([*loader, "--list", program], check=True, capture_output=True, text=True).stdout
    found = [loader[0], program, *re.findall(r"=> (/\S+)", needs)]
    folders = [archive.folder(str(folder)) for folder in (Path(ZONED).parent, Path(ZONED))]
    return folders + [archive.file(f"{ZONED}/{Path(name).name}", Path(name), 0o755) for name in sorted(set(found))]


def installed() -> set[str]:
    """The files of the packages of the build root that the guest has, and what finds their libraries quickly."""
    apt = ["apt-cache", "-oDir::Cache::pkgcache=", "-oDir::Cache::srcpkgcache=", "depends", "--recurse", "--installed"]
    done = subprocess.run([*apt, "--important", *PACKAGES], check=True, capture_output=True, text=True)
    # What a package depends on is indented, what another provides is in brackets.
    packages = {line for line in done.stdout.splitlines() if line[0].isalnum()}
    output = subprocess.run(["dpkg-query", "-L", *packages], check=True, capture_output=True, text=True).stdout
    names = {_canonical(line) for line in output.splitlines() if line.startswith("/")}
    return names | {"/etc/ld.so.cache", "/bin", "/sbin", "/lib", "/lib64"}


def _canonical(path: str) -> str:
    """The path with the links of its folder resolved: /bin/sh is /usr/bin/sh."""
    folder, leaf = os.path.split(path)
    return os.path.join(os.path.realpath(folder), leaf)


def _alternatives(names: set[str]) -> list[str]:
    """The links that dpkg does not list, where they lead to something that is there."""
    links = []
    for record in sorted(Path("/var/lib/dpkg/alternatives").iterdir()):
        choice = Path("/etc/alternatives") / record.name
        link = record.read_text().splitlines()[1]
        if os.path.realpath(choice) in names and os.path.islink(link):
            links += [str(choice), _canonical(link)]
    return links


def _entry(name: str, top: Path) -> Entry:
    """A file as it is in its tree or else in the build root, but compiled Python never looks at its source again.

    The image clamps the times that Python would compare, and to compile the
    standard library anew at every start takes an emulated CPU seconds.
    """
    place = top / name[1:]
    entry = archive.from_disk(name[1:], place if os.path.lexists(place) else Path(name))
    if name.endswith(".pyc"):
        content, unchecked = entry.content(), (1).to_bytes(4, "little")
        entry = archive.file(entry.name, content[:4] + unchecked + content[8:])
    return entry


def _compiled(names: Iterable[str]) -> list[str]:
    """Python's own modules as the build root has compiled them: they are of no architecture."""
    modules = [Path(name) for name in names if name.endswith(".py")]
    return [str(found) for path in modules for found in path.parent.glob(f"__pycache__/{path.stem}.cpython-*.pyc")]


def files(names: Iterable[str], top: Path, load: Path) -> list[Entry]:
    """All that goes into the root file system, parents first: files of the build root, or of another tree."""
    names = {name for name in names if not LEAVE_OUT.match(name)}
    names.update(_compiled(names))
    names.update(_alternatives(names))
    entries = {name: archive.folder(name, 0o1777 if name.endswith("tmp") else 0o755) for name in FOLDERS}
    for name in names:
        while name != "/":
            with contextlib.suppress(FileNotFoundError):
                entries.setdefault(name[1:], _entry(name, top))
            name = os.path.dirname(name)
    for name in ("etc/passwd", "etc/group", "etc/nsswitch.conf"):
        entries[name] = archive.file(name, Path("/", name))
    entries["usr/local/bin/load"] = archive.file("usr/local/bin/load", load, 0o755)
    entries["etc/hostname"] = archive.file("etc/hostname", b"guest\n")
    entries["etc/hosts"] = archive.file("etc/hosts", b"127.0.0.1 localhost guest\n")
    entries["etc/mtab"] = archive.link("etc/mtab", "/proc/self/mounts")
    regular = (stat.S_IFDIR, stat.S_IFREG, stat.S_IFLNK)
    return [entry for _, entry in sorted(entries.items()) if stat.S_IFMT(entry.mode) in regular]


def make_image(entries: list[Entry], image: Path) -> None:
    """Write an ext4 image without mounting anything; it appears whole or not at all."""
    part = image.with_name(f".{image.name}.part")
    part.unlink(missing_ok=True)
    blocks = sum(2 + len(entry.content()) // 4096 for entry in entries)
    size = (blocks * 21 // 20 * 4096 + (8 << 20)) & ~0xFFFFF
    command = ["mke2fs", "-q", "-F", "-t", "ext4", "-b", "4096", "-m", "0", "-N", str(len(entries) + 64)]
    command += ["-O", "^has_journal,^resize_inode", "-U", UUID, "-E", f"hash_seed={UUID},root_owner=0:0"]
    command += ["-d", "-", str(part), f"{size >> 10}k"]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(archive.EPOCH)}
    try:
        done = subprocess.run(command, input=archive.cpio(entries), capture_output=True, env=environment)
        if done.returncode:
            last = (done.stderr.decode(errors="replace").strip().splitlines() or [f"status {done.returncode}"])[-1]
            raise Failure(f"mke2fs could not make the guest's image: {last}; is there room on the disk?")
        os.replace(part, image)
    finally:
        part.unlink(missing_ok=True)


def made(arch: Arch, path: Path) -> Path:
    """The file that is for an architecture what this one is for the build root's own."""
    return path if arch == X86 else path.with_name(f"{path.stem}-{arch.name}{path.suffix}")


def ensure_program(source: Path, program: Path, *libraries: str, arch: Arch = X86) -> None:
    """Compile a program, static, unless that is done: it needs nothing of the guest's root file system."""

    def compile_it() -> None:
        program.parent.mkdir(parents=True, exist_ok=True)
        command = ["clang", "-O2", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", "-static", "-s"]
        if arch != X86:
            command += [f"--target={arch.triple}", f"--sysroot={tree(arch)}", "-fuse-ld=lld"]
        result = subprocess.run([*command, "-o", program, source, *libraries], capture_output=True, text=True)
        if result.returncode:
            raise Failure(f"{source} does not compile; correct it:\n{result.stderr}")

    name = "-".join(program.relative_to(paths.BUILD).parts)
    with steps.only_one("guest"):
        steps.step(name, steps.digest(source, Path(__file__)), [program], compile_it)


def ensure_programs(arch: Arch = X86) -> None:
    """Make PID 1 and the program of loads: all of it, for a guest that has its root file system from elsewhere."""
    ensure_program(LOAD_SOURCE, made(arch, LOAD), arch=arch)
    ensure_program(INIT_SOURCE, made(arch, INIT), arch=arch)


def ensure(whole: bool = False, arch: Arch = X86) -> None:
    """Make what is missing or stale: PID 1 and the image, or the whole initramfs."""
    ensure_programs(arch)
    product = made(arch, WHOLE if whole else IMAGE)
    with steps.only_one("guest"):
        top = Path("/") if arch == X86 else tree(arch)

        def make() -> None:
            names = installed() if arch == X86 else {f"/{path.relative_to(top)}" for path in top.rglob("*")}
            entries = files(names, top, made(arch, LOAD))
            steps.need_room(product.parent, 1, "the guest's root file system")
            if whole:
                steps.write_whole(product, archive.cpio(entries))
            else:
                make_image(entries + (zoned() if arch == X86 else []), product)

        key = steps.digest(INSTALLED, top.name, Path(__file__), Path(archive.__file__), LOAD_SOURCE)
        steps.step(product.name, key, [product], make)


def initramfs(
    command: list[str], environment: Mapping[str, str], whole: bool = False, programs: Iterable[Path] = (), arch: Arch = X86
) -> IO[bytes]:
    """A file without a name: PID 1 with what it is to run, after the whole root if that is wanted."""
    variables = sorted(f"{name}={value}" for name, value in environment.items())
    entries = [archive.file("init", made(arch, INIT), 0o755)]
    entries += [archive.file(f"{SHARE}/{program.name}", program, 0o755) for program in programs]
    for name, lines in (("command", command), ("environment", variables)):
        entries.append(archive.file(name, b"".join(os.fsencode(line) + b"\0" for line in lines)))
    output = os.fdopen(os.memfd_create("initramfs"), "w+b")
    if whole:
        with made(arch, WHOLE).open("rb") as base:
            shutil.copyfileobj(base, output)
    output.write(archive.cpio(entries))
    output.flush()
    return output
