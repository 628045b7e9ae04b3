# SPDX-License-Identifier: GPL-2.0
"""What turns the sources of this project into a measured kernel.

Everything here runs inside the build root that tools/enter makes.
"""
