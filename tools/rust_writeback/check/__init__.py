# SPDX-License-Identifier: GPL-2.0
"""All that can be red: tests, linters, the promises, and what shows that they can fail."""
