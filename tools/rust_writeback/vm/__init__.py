# SPDX-License-Identifier: GPL-2.0
"""The machines: emulated by QEMU or native in user-mode Linux, what they boot from, and how one speaks to them."""
