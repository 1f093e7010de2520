"""Logs that cannot be read: one sentence with file and line, exit code 3, and nothing is written."""

import json
import zipfile

import pytest

import colonnade as co
from colonnade.measuring.evaluation.logs import json_text, zip_members

from made_logs import (
    helm_instance,
    inspect_log,
    instance,
    sample,
    write_eval,
    write_helm,
    write_instances,
    write_results,
    write_samples,
)

read_logs = co.evaluation.read_logs
DIGITS, BRACKETS = "9" * 400, "[" * 100_000 + "]" * 100_000


def refused(run, path, said, place):
    """Both doors refuse a log with the same sentence."""
    with pytest.raises(ValueError, match=said) as refusal:
        read_logs(path)
    assert place in str(refusal.value)
    code, out, err = run("evaluate", "read", path, "-o", path.parent / "out.csv")
    assert (code, out, len(err.splitlines())) == (3, "", 1) and "Traceback" not in err
    assert not (path.parent / "out.csv").exists()


@pytest.mark.parametrize(
    "name, good, bad, said",
    [
        ("evaluation", '"score": 1.0', f'"score": {DIGITS}', "not a finite number"),
        ("evaluation", '"score": 1.0', '"score": NaN', "not a finite number"),
        ("evaluation", '"score": 1.0', '"score": "high"', "the text 'high' and not a number"),
        ("evaluation", '"evaluation": {', '"evaluation": 7, "was": {', "holds a number where a log has an object"),
        ("evaluation", '"model_id": "lab/m"', '"model_id": 7', "a number under 'model_id'"),
        ("evaluation", '"raw": "2 + 2"', f'"raw": {BRACKETS}', "too many brackets"),
        ("evaluation", '"raw": "2 + 2"', '"raw": "\udcff"', "not UTF-8"),
        ("evaluation", '"raw": "2 + 2"', '"raw": "2', "not JSON"),
    ],
)
def test_lines_of_every_eval_ever(tmp_path, run, name, good, bad, said):
    path = write_instances(tmp_path / "x_samples.jsonl", [instance("lab/m", "s1", 0.0), instance("lab/m", "s2", 1.0)])
    text = path.read_text()
    assert text.count(good) in (1, 2)
    head, _, tail = text.rpartition(good)
    path.write_bytes((head + bad + tail).encode("utf-8", "surrogateescape"))
    refused(run, path, said, f"line 2 of {path}")


@pytest.mark.parametrize(
    "good, bad, said",
    [
        ('"value": "C"', f'"value": {DIGITS}', "not a finite number"),
        ('"value": "C"', f'"value": {"9" * 5000}', "not JSON that can be read"),
        ('"value": "C"', '"value": 1e999', "not a finite number"),
        ('"model": "lab/m"', '"model": 7', "a number under 'model'"),
        ('"eval": {', '"eval": [], "was": {', "holds a list where a log has an object"),
        ('"samples": [', '"samples": 7, "was": [', "no list of samples"),
        ('"input": "What is 1?"', f'"input": {BRACKETS}', "HERE .* too many brackets"),
        ('"input": "What is 1?"', '"input": "\udcff"', "HERE .* not UTF-8"),
        ('"input": "What is 1?"', '"input": What', "HERE .* not JSON"),
    ],
)
def test_documents_of_inspect(tmp_path, run, good, bad, said):
    path = tmp_path / "log.json"
    text = json.dumps(inspect_log("lab/m", [(1, 1, {"s": "C"})]), indent=1)
    line = text[: text.index('"input"')].count("\n") + 1
    assert text.count(good) == 1
    path.write_bytes(text.replace(good, bad).encode("utf-8", "surrogateescape"))
    said = said.replace("HERE", f"line {line} of")
    refused(run, path, said, str(path))


@pytest.mark.parametrize(
    "content, said",
    [
        ("{}", "not a list of instances"),
        ("[7]", "instance 0 of .* holds a number"),
        ('[{"instance_id": "a", "stats": 7}]', "a number under 'stats'"),
        ('[{"instance_id": "a", "stats": [7]}]', "holds a number where"),
        ('[{"instance_id": "a", "stats": [{"name": "exact_match", "count": 1}]}]', "holds the text 'exact_match'"),
        ('[{"instance_id": 1.5, "stats": [{"name": {"name": "pass"}, "count": 1, "mean": 1}]}]', "under 'instance_id'"),
        ('[{"instance_id": "a", "stats": [{"name": {"name": "pass"}, "count": "x", "mean": 1}]}]', "the text 'x'"),
        ('[{"instance_id": "a", "stats": [{"name": {"name": "pass"}, "count": -1, "mean": 1}]}]', "not positive"),
        ('[{"instance_id": "a", "stats": [{"name": {"name": "pass"}, "count": 1, "sum": "1"}]}]', "the text '1'"),
        (
            f'[{{"instance_id": "a", "stats": [{{"name": {{"name": "pass"}}, "count": 1, "mean": {DIGITS}}}]}}]',
            "not a finite",
        ),
        ("[\n" + BRACKETS, "line 2 of .* too many brackets"),
        ("[\n\n{", "line 3 of .* not JSON"),
    ],
)
def test_documents_of_helm(tmp_path, run, content, said):
    path = write_helm(tmp_path, "m", [helm_instance("id1", exact_match=1)])
    path.write_text(content)
    refused(run, path, said, str(path))


def test_zip_files_that_are_cut_or_changed(tmp_path, run):
    path = tmp_path / "log.eval"
    log = inspect_log("m", [(k, 1, {"s": "C"}) for k in range(50)])
    for method in ("deflate", "zstandard"):
        write_eval(path, log, method=method)
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
        refused(run, path, "not a complete zip file", str(path))
        with open(path, "wb") as file:
            at = whole.index(b"summaries.json") + 40
            file.write(whole[:at] + bytes(8) + whole[at + 8 :])
        refused(run, path, "summaries.json in .* cannot be unpacked", str(path))
    path.write_bytes(b"")
    refused(run, path, "not a complete zip file", str(path))
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("something.json", "{}")
    refused(run, path, "no header.json", str(path))
    write_eval(path, log)
    with zipfile.ZipFile(path, "a") as file, pytest.warns(UserWarning, match="Duplicate name"):
        file.writestr("summaries.json", b'[\n\n{"id": \xff}]')
    refused(run, path, "line 3 of summaries.json in .* is not UTF-8", str(path))


def test_sizes_are_counted_before_anything_is_parsed(tmp_path, run, monkeypatch):
    """A small zip file may unpack to gigabytes, and a line may have no end."""
    for module in (json_text, zip_members):
        monkeypatch.setattr(module, "DOCUMENT_BYTES", 10_000)
    monkeypatch.setattr(json_text, "LINE_BYTES", 10_000)
    bomb = inspect_log("m" * 20_000, [(1, 1, {"s": 1})])
    write_eval(tmp_path / "a.eval", bomb)
    assert (tmp_path / "a.eval").stat().st_size < 10_000
    refused(run, tmp_path / "a.eval", "header.json in .* has more than 10,000 bytes", "a.eval")
    write_eval(tmp_path / "b.eval", bomb, method="zstandard")
    refused(run, tmp_path / "b.eval", "header.json in .* has more than 10,000 bytes", "b.eval")
    (tmp_path / "c.json").write_text(json.dumps(bomb))
    refused(run, tmp_path / "c.json", "has more than 10,000 bytes", "c.json")
    path = write_samples(tmp_path, "t", [sample(0, acc=1.0), {**sample(1, acc=1.0), "doc": "x" * 20_000}])
    refused(run, path, "line 2 of .* has more than 10,000 bytes", "line 2")


def test_a_header_that_lies_about_its_size_is_found_out(tmp_path, monkeypatch):
    path = tmp_path / "a.eval"
    write_eval(path, inspect_log("m" * 20_000, [(1, 1, {"s": 1})]), method="zstandard")
    data = bytearray(path.read_bytes())
    at = data.rindex(b"header.json") - 22  # the size in the central directory
    assert int.from_bytes(data[at : at + 4], "little") > 20_000
    data[at : at + 4] = (100).to_bytes(4, "little")
    path.write_bytes(data)
    monkeypatch.setattr(zip_members, "DOCUMENT_BYTES", 10_000)
    monkeypatch.setattr(json_text, "DOCUMENT_BYTES", 10_000)
    with pytest.raises(ValueError, match="has more than 10,000 bytes"):
        read_logs(path)


def test_names_with_escape_sequences_are_shown_and_not_sent(tmp_path, run):
    evil = "\x1b[31mred\x1b[0m\u202e"
    records = [instance(evil, "s1", 1.0, evaluation=f"t{evil}"), instance(evil, "s1", 1.0, reference="5", time=2)]
    path = write_instances(tmp_path / "x_samples.jsonl", records)
    code, out, err = run("evaluate", "read", path, "-o", tmp_path / "out.csv")
    assert code == 0 and "\x1b" not in out + err
    path = write_instances(tmp_path / "x_samples.jsonl", [{**records[0], "evaluation": evil}])
    code, out, err = run("evaluate", "read", path, "-o", tmp_path / "out2.csv")
    assert code == 3 and "\x1b" not in out + err and len(err.splitlines()) == 1


def test_half_of_a_surrogate_pair_in_a_name(tmp_path, run):
    path = write_instances(tmp_path / "x_samples.jsonl", [instance("m\ud800", "s1", 1.0)])
    assert run("evaluate", "read", path, "-o", tmp_path / "out.csv")[0] == 0
    assert "m\\ud800" in (tmp_path / "out.csv").read_text()


def test_other_files_are_refused_by_name_and_left_out_of_folders(tmp_path, run):
    (tmp_path / "a.jsonl").write_text('{"text": "hello"}\n')
    refused(run, tmp_path / "a.jsonl", "a.jsonl is not a log that can be read", "a.jsonl")
    code, out, err = run("evaluate", "read", tmp_path, "-o", tmp_path / "out.csv")
    assert code == 5 and "no logs in" in err and out == ""
    code, _, err = run("evaluate", "read", tmp_path / "absent", "-o", tmp_path / "out.csv")
    assert code == 5 and "there is no file or folder" in err


def test_repeats_are_written_beside_the_table(tmp_path, run):
    records = [instance("m", "s1", 1.0), instance("m", "s1", 0.0), instance("m", "s2", 1.0)]
    path = write_instances(tmp_path / "x_samples.jsonl", records)
    code, out, _ = run("evaluate", "read", path, "-o", tmp_path / "out.csv")
    assert code == 0 and "2 questions; 1 model;" in out and "out-weights.csv (repeats)" in out
    values, weights = (co.read(tmp_path / name) for name in ("out.csv", "out-weights.csv"))
    assert values.row_names.tolist() == weights.row_names.tolist() == ["sums/s1", "sums/s2"]
    assert values.values.tolist() == [0.5, 1] and weights.values.tolist() == [2, 1]
    code, out, err = run("evaluate", "read", path, "-o", tmp_path / "out.csv")
    assert code != 0 and out == "" and "out.csv" in err


def places(content, path=()):
    """The paths to all values in JSON content."""
    yield path
    for key in content if isinstance(content, dict) else range(len(content)) if isinstance(content, list) else ():
        yield from places(content[key], (*path, key))


def with_other(content, path, value):
    """A copy of JSON content with another value at a place."""
    if not path:
        return value
    copy = content.copy()
    copy[path[0]] = with_other(content[path[0]], path[1:], value)
    return copy


def logs_to_spoil(folder):
    """Path, content and way of writing of a document of every kind."""

    def document(path, content):
        path.write_text(json.dumps(content))

    def line(path, content):
        path.write_text(json.dumps(content) + "\n")

    write_samples(folder / "h", "t", [sample(0, acc=1.0)])
    write_results(folder / "h", "m", filters=("none",), losses=["acc"], args=["revision=a"])
    helm = write_helm(folder / "l", "m", [helm_instance("id1", exact_match=1)])
    aggregate = {"evaluation_results": [{"evaluation_name": "sums", "metric_config": {"lower_is_better": True}}]}
    write_instances(folder / "e" / "x_samples.jsonl", [instance("m", "s1", 1.0, metadata={"filter": "a"})])
    (folder / "e" / "x.json").write_text(json.dumps(aggregate))
    (folder / "i").mkdir()
    (folder / "i" / "a.json").write_text(json.dumps(inspect_log("m", [(1, 1, {"s": {"x": "C"}})])))
    repeated = {**sample(0, acc=1.0), "scores_per_repeat": {"acc": [1.0, 0.0]}}
    for path in (*folder.glob("h/*.json"), *folder.glob("e/*.json"), *folder.glob("i/*.json"), helm):
        yield path, json.loads(path.read_text()), document
    yield helm.with_name("run_spec.json"), json.loads(helm.with_name("run_spec.json").read_text()), document
    yield next(folder.glob("h/*.jsonl")), repeated, line
    yield folder / "e" / "x_samples.jsonl", instance("m", "s1", 1.0, metadata={"filter": "a"}), line


def test_whatever_stands_in_a_log_it_is_read_or_refused_with_a_sentence(tmp_path):
    """Every value of every kind of log is replaced by values of every type."""
    n_refused = n_read = 0
    for path, content, write in logs_to_spoil(tmp_path):
        for place in places(content):
            for value in (None, 7, -1, 0.5, 1e999, True, "x", "\ud800", [], [7], {}, {"x": 7}, int(DIGITS)):
                write(path, with_other(content, place, value))
                try:
                    read_logs(path.parent)
                    n_read += 1
                except (ValueError, FileNotFoundError) as refusal:  # The latter if it no longer looks like a log.
                    assert len(str(refusal).splitlines()) == 1 and str(path.parent) in str(refusal)
                    n_refused += 1
        write(path, content)
    assert n_read > 500 and n_refused > 200


def test_a_log_that_ends_too_early_is_read_or_refused_with_a_sentence(tmp_path):
    for path, _, _ in logs_to_spoil(tmp_path):
        whole = path.read_bytes()
        for size in range(0, len(whole), max(1, len(whole) // 60)):
            path.write_bytes(whole[:size])
            try:
                read_logs(path.parent)
            except (ValueError, FileNotFoundError) as refusal:
                assert len(str(refusal).splitlines()) == 1 and str(path.parent) in str(refusal)
        path.write_bytes(whole)
