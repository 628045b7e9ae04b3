# SPDX-License-Identifier: GPL-2.0
"""The benchmarks: loads on the writeback cores, and how much the results differ."""
