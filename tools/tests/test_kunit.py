# SPDX-License-Identifier: GPL-2.0
"""What the KUnit suites run on."""

import pytest
from rust_writeback.arch import ARM64
from rust_writeback.build import config
from rust_writeback.check import kunit


def test_both_cores_and_one() -> None:
    both, one = (config.merge(list(platform.configs)) for platform in kunit.chosen(None, None))
    assert both["CONFIG_RUST_WRITEBACK_AB"] == "y" and "CONFIG_RUST_WRITEBACK_AB" not in one
    assert both["CONFIG_RUST_WRITEBACK_KUNIT_TEST"] == one["CONFIG_RUST_WRITEBACK_KUNIT_TEST"] == "y"


@pytest.mark.parametrize("pages, option", [(None, "4K"), ("4k", "4K"), ("16k", "16K"), ("64k", "64K")])
def test_arm64_has_pages_of_three_sizes(pages: str | None, option: str) -> None:
    (platform,) = kunit.chosen("arm64", pages)
    assert config.merge(list(platform.configs))[f"CONFIG_ARM64_{option}_PAGES"] == "y"
    assert platform.arch == "arm64" and platform.out != kunit.UML.out


def test_no_two_share_a_folder() -> None:
    platforms = [kunit.UML, kunit.ONE_CORE, kunit.RT, *(kunit.arm64(pages) for pages in ARM64.pages)]
    assert len({place for one in platforms for place in (one.out, one.ktap)}) == 2 * len(platforms)
