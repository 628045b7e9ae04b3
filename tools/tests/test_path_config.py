# SPDX-License-Identifier: GPL-2.0
"""Kernels: their configuration is checked to the last option, and what ccache gives back is what would be compiled."""

import subprocess
from pathlib import Path

import pytest
from rust_writeback.build import config, kernel
from rust_writeback.errors import Failure
from rust_writeback.build.variants import MEASURED, SANITIZERS


def test_later_fragments_override(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("# a comment\nCONFIG_A=y\nCONFIG_B=y\n")
    (tmp_path / "b").write_text('# CONFIG_B is not set\nCONFIG_C="text"\n')
    merged = config.merge([tmp_path / "a", tmp_path / "b"])
    assert merged == {"CONFIG_A": "y", "CONFIG_B": "n", "CONFIG_C": '"text"'}
    assert config.parse(config.render(merged)) == merged


@pytest.mark.parametrize(
    ("final", "message"),
    [
        ("CONFIG_B=y\n", r"CONFIG_A=y \(it is n\)"),
        ("CONFIG_A=m\n", r"CONFIG_A=y \(it is m\)"),
        ("CONFIG_A=y\nCONFIG_OFF=y\n", r"CONFIG_OFF=n \(it is y\)"),
        ("CONFIG_B=y\nCONFIG_A y\n", "line 2 .* CONFIG_A y"),
    ],
)
def test_an_option_that_kconfig_did_not_take_is_named(final: str, message: str) -> None:
    asked = {"CONFIG_A": "y", "CONFIG_OFF": "n"}
    config.check(asked, config.parse("CONFIG_A=y\n# CONFIG_OFF is not set\n"))
    with pytest.raises(Failure, match=message):
        config.check(asked, config.parse(final))


def test_each_kernel_has_files_of_its_own_and_its_fragment_last() -> None:
    for variant in SANITIZERS.values():
        own = config.merge(variant.fragments[-1:])
        assert own and own.items() - config.merge(MEASURED.fragments).items(), "it changes nothing"
        assert variant.fragments[-1].stem == variant.name
    places = [place for one in (MEASURED, *SANITIZERS.values()) for place in (one.out, one.image, one.dot_config)]
    assert len(set(places)) == len(places)


def test_an_image_contains_its_files(tmp_path: Path) -> None:
    """The next kernel of the same length is another one."""
    (tmp_path / "piggy.S").write_text('.section ".rodata", "a"\n.incbin "payload"\n')
    environment = kernel.make_environment() | {"CCACHE_DIR": str(tmp_path / "ccache")}
    command = [str(kernel.COMPILER), "-c", "-MD", "-o", "object", "piggy.S"]
    objects = []
    for payload in (b"one kernel", b"an other 1", b"one kernel"):
        (tmp_path / "payload").write_bytes(payload)
        subprocess.run(command, cwd=tmp_path, env=environment, check=True)
        objects.append((tmp_path / "object").read_bytes())
        assert payload in objects[-1]
    assert objects[0] == objects[2]
