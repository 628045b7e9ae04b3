# SPDX-License-Identifier: GPL-2.0
"""The machines: emulated by QEMU or native in user-mode Linux, their images, and the connection to a guest."""
