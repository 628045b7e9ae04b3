# SPDX-License-Identifier: GPL-2.0
"""The benchmarks' part that runs beside the load, on the machine that is measured."""
