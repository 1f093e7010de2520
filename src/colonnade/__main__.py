"""The command `colonnade`, also as ``python -m colonnade``."""

import signal
import sys


def main() -> None:
    """Run the command line, or say what it needs if the extra `cli` is not installed."""
    try:
        from .cli import run
    except ModuleNotFoundError as error:
        if error.name not in ("click", "rich"):
            raise
        from . import __version__

        if sys.argv[1:] == ["--version"]:
            print(f"colonnade, version {__version__}")
            return
        print("the command line needs a few more packages: pip install 'colonnade[cli]'", file=sys.stderr)
        sys.exit(2)
    try:
        run()
    finally:  # all is done or undone: what the interpreter still tidies up needs no interrupt
        signal.signal(signal.SIGINT, signal.SIG_IGN)


if __name__ == "__main__":
    main()
