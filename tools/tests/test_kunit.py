# SPDX-License-Identifier: GPL-2.0
"""What the KUnit suites run on."""

from rust_writeback.arch import ARM64
from rust_writeback.build import config
from rust_writeback.check import kunit

PLATFORMS = [kunit.UML, kunit.ONE_CORE, kunit.RT, *(kunit.arm64(pages) for pages in ARM64.pages)]


def test_each_has_the_suites_and_its_own_core_or_pages() -> None:
    configs = {platform.name: config.merge(list(platform.configs)) for platform in PLATFORMS}
    assert all(found["CONFIG_RUST_WRITEBACK_KUNIT_TEST"] == "y" for found in configs.values())
    assert len(configs) == len(PLATFORMS), "two share a folder"
    both = [name for name, found in configs.items() if found.get("CONFIG_RUST_WRITEBACK_AB") == "y"]
    assert both == ["kunit", "kunit-rt"]
    for pages in ARM64.pages:
        assert configs[f"kunit-arm64-{pages}"][f"CONFIG_ARM64_{pages.upper()}_PAGES"] == "y"
