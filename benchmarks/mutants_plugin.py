"""The pytest plugin of `mutants`: records which test runs which line of the package, or runs chosen tests in order.

The record covers tests and the processes they start. Each process appends to a file of its own in the folder
MUTANTS_RECORD, so a killed process loses nothing. A line `@test` names the test, or a whole test file during the setup
of a shared fixture. The lines of the package that it runs follow, as `path:number`,
and at the end `=seconds test`, of processor time. `!test` is one that failed, `~test` one
marked slow.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest

PACKAGE = str(Path(__file__).parents[1] / "src") + os.sep
_seen: set = set()
_files: dict = {}


def pytest_collection_modifyitems(items):
    """Keep the tests listed in the file MUTANTS_TESTS, in its order."""
    if "MUTANTS_TESTS" in os.environ:
        place = {name: k for k, name in enumerate(Path(os.environ["MUTANTS_TESTS"]).read_text().splitlines())}
        items[:] = sorted((item for item in items if item.nodeid in place), key=lambda item: place[item.nodeid])


def _write(text):
    pid = os.getpid()  # A forked process needs a file of its own.
    if pid not in _files:
        _files[pid] = os.open(f"{os.environ['MUTANTS_RECORD']}/{pid}", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        text = f"@{os.environ.get('MUTANTS_CONTEXT', '')}\n{text}"
    os.write(_files[pid], text.encode())


def _line(frame, event, _):
    key = frame.f_code.co_filename, frame.f_lineno
    if event == "line" and key not in _seen:
        _seen.add(key)
        _write(f"{key[0].removeprefix(PACKAGE)}:{key[1]}\n")
    return _line


def _call(frame, _event, _argument, PACKAGE=PACKAGE):  # globals are gone when an interpreter ends
    return _line if frame.f_code.co_filename.startswith(PACKAGE) else None


def start():
    """Trace this process from now on."""
    threading.settrace(_call)
    sys.settrace(_call)


def _enter(context):
    os.environ["MUTANTS_CONTEXT"] = context
    _seen.clear()
    _write(f"@{context}\n")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    if "MUTANTS_RECORD" not in os.environ:
        return (yield)
    start()
    _enter(item.nodeid)
    if item.get_closest_marker("slow"):
        _write(f"~{item.nodeid}\n")
    before = sum(os.times()[:4])
    try:
        return (yield)
    finally:
        _write(f"={sum(os.times()[:4]) - before:.2f} {item.nodeid}\n")


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    if "MUTANTS_RECORD" not in os.environ or fixturedef.scope == "function":
        return (yield)
    before = os.environ["MUTANTS_CONTEXT"]
    _enter(before.split("::")[0])
    try:
        return (yield)
    finally:
        _enter(before)


def pytest_runtest_logreport(report):
    if report.failed and "MUTANTS_RECORD" in os.environ:
        _write(f"!{report.nodeid}\n")
