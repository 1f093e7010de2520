"""What is logged, under which name and level; nothing is shown unless the user asks for it."""

import logging
import subprocess
import sys

import numpy as np

import colonnade as co


def made(rng):
    M = rng.uniform(1, 2, (20, 2)) @ rng.uniform(1, 2, (2, 12))
    M[5:, 8:] = np.nan
    return M


def test_results_at_info_and_choices_at_debug(rng, caplog, tmp_path):
    with caplog.at_level(logging.DEBUG, "colonnade"):
        completion = co.complete(made(rng))
        co.files.write(completion, tmp_path / "t.csv")
        co.read(tmp_path / "t.csv")
    assert {record.name for record in caplog.records} == {"colonnade"}
    said = {level: [r.getMessage() for r in caplog.records if r.levelno == level] for level in (10, 20)}
    results = [line.rpartition(" in ")[0] for line in said[logging.INFO]]
    assert results == [f"complete: {completion!r}", "write: done", f"read: {co.read(tmp_path / 't.csv')!r}"]
    assert "complete: begins" in said[logging.DEBUG]
    assert any(line.startswith("complete: learning from ") for line in said[logging.DEBUG])
    for about, words in completion.choices.items():
        assert f"complete: {about}: {words}" in said[logging.DEBUG]


def test_nothing_is_shown_and_no_handler_is_set():
    code = "import logging, colonnade as co; co.complete([[1., 2.], [2., 4.]]);"
    code += "print(logging.getLogger('colonnade').handlers)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (found.stdout, found.stderr) == ("[]\n", "")
