# SPDX-License-Identifier: GPL-2.0
"""Makes a kernel, and patches, from the fetched source, our files and our hooks."""
