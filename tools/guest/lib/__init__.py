# SPDX-License-Identifier: GPL-2.0
"""What the benchmark and the rows of conformance share."""
