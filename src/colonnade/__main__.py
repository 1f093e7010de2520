"""The command `colonnade`, also as ``python -m colonnade``."""

import os
import signal
import sys
import threading


def main() -> None:
    """Run the command line, or say what it needs if the extra `cli` is not installed."""
    try:
        from .interfaces.cli import run
    except ModuleNotFoundError as error:
        if error.name not in ("click", "rich"):
            raise
        from . import __version__

        if sys.argv[1:] == ["--version"]:
            print(f"colonnade, version {__version__}")
            return
        print("the command line needs a few more packages: pip install 'colonnade[cli]'", file=sys.stderr)
        sys.exit(2)
    code: int | str | None = 0
    try:
        run()
    except SystemExit as end:
        code = end.code
        raise
    finally:  # All is done or undone; what the interpreter still tidies up needs no interrupt.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        _end_with_threads(code)


def _end_with_threads(code) -> None:
    """Leave at once if threads still read ahead: the end of the interpreter would tear them out of other libraries."""
    if threading.active_count() > 1 and isinstance(code, int) and sys.exc_info()[0] in (None, SystemExit):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
