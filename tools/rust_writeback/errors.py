# SPDX-License-Identifier: GPL-2.0
"""How a command ends when something is wrong: one line and a status."""

from __future__ import annotations

import errno
import sys
from collections.abc import Callable


class Failure(Exception):
    """Something that the user can mend.

    The message is one line: what is wrong, then what to do.
    """

    def __init__(self, message: str, status: int = 1) -> None:
        super().__init__(message)
        self.status = status


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
