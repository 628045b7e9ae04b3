# SPDX-License-Identifier: GPL-2.0
"""Kernel configuration: merged in order, and checked to the last option."""

from pathlib import Path

import pytest
from rust_writeback.build import config
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
def test_what_was_not_got_is_named(final: str, message: str) -> None:
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
