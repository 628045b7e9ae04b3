# SPDX-License-Identifier: GPL-2.0
"""Modules that the guest tests, the benchmark and the rows of conformance share."""
