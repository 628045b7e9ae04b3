# SPDX-License-Identifier: GPL-2.0
"""Builds a kernel from the sources of this project, tests it and measures it.

Everything here runs inside the build root that tools/enter makes.
"""
