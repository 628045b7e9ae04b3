# SPDX-License-Identifier: GPL-2.0
"""From the fetched source, our files and our hooks to a kernel, and to patches."""
