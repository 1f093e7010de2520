"""The examples that mypy reads are programs that run."""

from typing_examples import main


def test_examples_run():
    main()
