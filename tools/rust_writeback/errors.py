# SPDX-License-Identifier: GPL-2.0
"""Errors of a command: one line on stderr and an exit status."""

import argparse
import errno
import sys
from collections.abc import Callable
from typing import NoReturn


class Failure(Exception):
    """An error that the user can fix.

    The message is one line: what is wrong, then what to do.
    """

    def __init__(self, message: str, status: int = 1) -> None:
        super().__init__(message)
        self.status = status


class Parser(argparse.ArgumentParser):
    """A mistake on the command line is told in one line."""

    def error(self, message: str) -> NoReturn:
        usage = " ".join(self.format_usage().split()).removeprefix("usage: ")
        raise Failure(f"{message}; allowed: {usage}", 2)


def check_flags(options: argparse.Namespace, *names: str) -> None:
    """Refuse other values of what is on or off than make's NAME=1."""
    for name in names:
        if getattr(options, name) not in (None, "1"):
            raise Failure(f"{name.upper()}={getattr(options, name)} is unknown; give {name.upper()}=1, or omit it", 2)


def no_room(where: object) -> str:
    """The message for a full disk, whoever noticed it."""
    return f"no room left on the disk of {where}; free some space and run the same command again"


def run_main(main: Callable[[], int]) -> int:
    """Run a command and turn how it ended into an exit status."""
    try:
        return main()
    except Failure as failure:
        print(f"error: {failure}", file=sys.stderr, flush=True)
        return failure.status
    except KeyboardInterrupt:
        print("error: interrupted; run the same command again to go on", file=sys.stderr, flush=True)
        return 130
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        print(f"error: {no_room(error.filename or 'the project or the cache')}", file=sys.stderr, flush=True)
        return 1
