# SPDX-License-Identifier: GPL-2.0
"""All checks: tests, linters, the promises, and proofs that the checks can fail."""
