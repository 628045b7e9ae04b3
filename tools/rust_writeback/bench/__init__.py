# SPDX-License-Identifier: GPL-2.0
"""The benchmarks: loads on the writeback cores, and what can be said of the difference."""
