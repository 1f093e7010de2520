"""Addresses in place of paths: the same bytes from an S3 server, its faults, and no secret anywhere."""

import io
import json
import logging
import sys
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import colonnade as co
from colonnade._support import storage
from colonnade._support.storage import Url, as_path, options_of, without_secrets

from problems import hide, low_rank
from stores import BUCKET, OPTIONS, faulty_proxy, s3_server

pytest.importorskip("s3fs", reason="the extra remote is not installed")
pytest.importorskip("moto", reason="a server for tests is not installed")

FIXED = {"rank": 3, "center": False, "shrinkage": 0.0, "refine": 0}
SECRETS = [OPTIONS["key"], OPTIONS["secret"]]


@pytest.fixture(scope="module")
def server():
    with s3_server() as endpoint:
        yield endpoint


@pytest.fixture
def options(server):
    return {**OPTIONS, "endpoint_url": server}


@pytest.fixture
def place(request, server):
    """A folder of the bucket of its own for every test."""
    return f"s3://{BUCKET}/{abs(hash(request.node.name)):x}"


def triples(rng, m=40, n=90):
    L, R = low_rank(rng, m, n, 3)
    M, _ = hide(rng, L @ R, 8, 12)
    columns, rows = np.nonzero(~np.isnan(M.T))
    order = rng.permutation(rows.size)
    return M, {"row": rows[order], "column": columns[order], "value": M[rows, columns][order]}


def put(place, name, table, options):
    buffer = io.BytesIO()
    parquet.write_table(pa.table(table), buffer)
    (Url(place, options) / name).write_bytes(buffer.getvalue())


@pytest.fixture
def given(place, options, tmp_path):
    """Three files of triples in the store, and the same on the disk."""
    _, table = triples(np.random.default_rng(1))
    (tmp_path / "x").mkdir()
    for k in range(3):
        part = {name: column[k::3] for name, column in table.items()}
        put(place, f"x/{k}.parquet", part, options)
        parquet.write_table(pa.table(part), tmp_path / "x" / f"{k}.parquet")
    return f"{place}/x", tmp_path / "x"


def names_below(place, options):
    return [str(found)[len(place) + 1 :] for found in Url(place, options).rglob("*")]


def assert_same(stored, expected):
    for name in ("coefficients", "basis", "status"):
        assert getattr(stored, name).tobytes() == getattr(expected, name).tobytes()
    for name in ("indptr", "rows", "values"):
        assert getattr(stored.observations, name).tobytes() == getattr(expected.observations, name).tobytes()


@pytest.mark.slow
def test_a_folder_of_parquet_and_a_result_give_the_bytes_of_the_disk(given, place, options, tmp_path):
    there, here = given
    made = co.complete_triples(there, f"{place}/out", block_entries=100, storage_options=options)
    expected = co.complete_triples(here, tmp_path / "out", block_entries=100)
    assert_same(made, expected)
    assert_same(co.Completion.load(f"{place}/out", storage_options=options), expected)
    names = names_below(f"{place}/out", options)
    assert (
        names[0] == "facts.json" and not [name for name in names if "run.json" in name or name.endswith("s.json")][1:]
    )
    local = sorted(str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*") if path.is_file())
    assert sorted(name.partition("/")[2] or name for name in names) == local


def test_globs_files_and_other_kinds(given, place, options, tmp_path):
    there, here = given
    some = co.read(f"{there}/[01].parquet", storage_options=options)
    expected = co.read([here / "0.parquet", here / "1.parquet"])
    assert some.values.tobytes() == expected.values.tobytes()
    one = co.read(f"{there}/2.parquet", storage_options=options)
    assert one.values.tobytes() == co.read(here / "2.parquet").values.tobytes()
    (Url(place, options) / "t.csv").write_bytes(b"a,b\n1,2\n3,\n")
    assert co.read(f"{place}/t.csv", storage_options=options).shape == (2, 2)
    (Url(place, options) / "bad.csv").write_bytes(b"a,b\n1,2\n3,x\n")
    (Url(place, options) / "odd[1].csv").write_bytes(b"a,b\n1,2\n3,\n")  # a name, not a pattern
    assert co.read(f"{place}/odd[1].csv", storage_options=options).shape == (2, 2)
    with pytest.raises(FileNotFoundError, match="no file has a name like"):
        co.read(f"{place}/none*.csv", storage_options=options)
    with pytest.raises((FileNotFoundError, ValueError), match=r"none\.parquet"):
        co.read(f"{place}/none.parquet", storage_options=options)


def test_an_address_of_the_web_is_only_read(tmp_path, quick):
    from functools import partial
    from http.server import SimpleHTTPRequestHandler

    class Quiet(SimpleHTTPRequestHandler):  # It knows no ranges: it sends all of a file.
        def log_message(self, *_):
            pass

    _, table = triples(np.random.default_rng(6))
    parquet.write_table(pa.table(table), tmp_path / "t.parquet")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=tmp_path))
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        web = f"http://127.0.0.1:{server.server_port}"
        found = co.read(f"{web}/t.parquet")
        assert found.values.tobytes() == co.read(tmp_path / "t.parquet").values.tobytes()
        with pytest.raises(OSError, match="cannot be written"):
            co.complete_triples(f"{web}/t.parquet", f"{web}/out")
    finally:
        server.shutdown()
        server.server_close()


@contextmanager
def web_of(table, answers):
    """The address of a Parquet file; the first requests get the given codes of HTTP, None a broken connection."""
    buffer = io.BytesIO()
    parquet.write_table(pa.table(table), buffer)
    content = buffer.getvalue()

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_):
            pass

        def do_GET(self):
            code = answers.pop(0) if answers else 200
            if code is None:
                return self.connection.close()
            self.send_response(code)
            self.send_header("Content-Length", len(content) if code == 200 else 0)
            self.end_headers()
            if code == 200 and self.command == "GET":
                self.wfile.write(content)

        do_HEAD = do_GET

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/t.parquet"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("code", [503, None], ids=["503", "a broken connection"])
def test_an_address_of_the_web_is_asked_again(quick, code):
    _, table = triples(np.random.default_rng(6))
    with web_of(table, [code] * 5) as address:
        assert co.read(address).values.size == table["value"].size
    with (
        web_of(table, [code] * 10_000) as address,
        pytest.raises(OSError, match=r"after 5 attempts.*check the network"),
    ):
        co.read(address)


@pytest.mark.parametrize("code, words", [(404, "there is no such file"), (403, "access is denied")])
def test_an_address_of_the_web_that_is_refused_is_not_asked_again(quick, code, words):
    answers = [code] * 10_000
    with web_of(triples(np.random.default_rng(6))[1], answers) as address, pytest.raises(OSError, match=words):
        co.read(address)
    assert len(answers) >= 10_000 - 10


@pytest.mark.parametrize("module, scheme, extra", [("gcsfs", "gs", "gcs"), ("s3fs", "s3", "remote")])
def test_a_store_without_its_library_is_a_sentence_that_names_the_extra(monkeypatch, module, scheme, extra):
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules["fsspec.registry"]._registry, scheme, raising=False)
    with pytest.raises(ModuleNotFoundError, match=rf"{scheme}:// need .*pip install 'colonnade\[{extra}\]'$"):
        co.read(f"{scheme}://bucket/x.parquet")


def test_folders_of_hive_are_not_read_as_columns(place, options):
    _, table = triples(np.random.default_rng(2))
    put(place, "hive/value=3/part.parquet", table, options)
    found = co.read(f"{place}/hive", row="row", column="column", value="value", storage_options=options)
    assert found.values.size == table["value"].size and not (found.values == 3).all()


def test_zarr(place, options):
    zarr = pytest.importorskip("zarr", reason="the extra zarr is not installed")
    M, _ = triples(np.random.default_rng(3))
    store = zarr.storage.FsspecStore.from_url(f"{place}/x.zarr", storage_options=options)
    zarr.create_array(store, data=M, chunks=(40, 30), fill_value=np.nan)
    np.testing.assert_array_equal(co.read(f"{place}/x.zarr", storage_options=options).to_dense(), M)


def test_tables_and_completions_are_written(place, options):
    M, _ = triples(np.random.default_rng(4))
    completion = co.complete(M)
    completion.save(as_path(f"{place}/saved", options))
    loaded = co.Completion.load(f"{place}/saved", storage_options=options)
    np.testing.assert_array_equal(loaded.to_dense(), completion.to_dense())
    with pytest.raises(FileExistsError):
        completion.save(as_path(f"{place}/saved", options))
    completion.save(as_path(f"{place}/saved", options), force=True)
    co.files.write(completion, as_path(f"{place}/filled.parquet", options))
    assert co.read(f"{place}/filled.parquet", storage_options=options).values.size == M.size


def test_a_saved_result_is_replaced_in_one_step(given, place, options, monkeypatch):
    there, _ = given
    M, _ = triples(np.random.default_rng(4))
    old, new, out = co.complete(M, rank=2), co.complete(M, rank=1), as_path(f"{place}/out", options)
    old.save(out)
    upload, left = Url.upload, [3]

    def broken(url, path):
        left[0] -= 1
        if not left[0]:
            raise OSError("the network is gone")
        upload(url, path)

    monkeypatch.setattr(Url, "upload", broken)
    with pytest.raises(OSError, match="network is gone"):
        new.save(out, force=True)
    assert_same(co.Completion.load(out), old)
    new.save(out, force=True)
    assert_same(co.Completion.load(out), new)
    made = co.complete_triples(there, out, force=True, storage_options=options, **FIXED)  # In place of a saved one.
    assert_same(co.Completion.load(out), made)
    new.save(out, force=True)
    assert_same(co.Completion.load(out), new)
    assert {name.partition("-")[0] for name in names_below(str(out), options)} == {"facts.json", "saved"}


def test_a_result_that_was_copied_into_the_store_is_replaced(given, place, options, tmp_path):
    there, here = given
    co.complete_triples(here, tmp_path / "out", **FIXED)
    for found in [found for found in (tmp_path / "out").rglob("*") if found.is_file()]:
        (Url(place, options) / "out" / found.relative_to(tmp_path / "out")).upload(found)
    made = co.complete_triples(there, f"{place}/out", force=True, storage_options=options, **{**FIXED, "rank": 2})
    assert_same(co.Completion.load(f"{place}/out", storage_options=options), made)
    assert len({name.split("/")[0] for name in names_below(f"{place}/out", options)}) == 2


def test_memory_addresses_need_no_server():
    M, table = triples(np.random.default_rng(5))
    put("memory://somewhere", "t.parquet", table, {})
    made = co.complete_triples("memory://somewhere/t.parquet", "memory://somewhere/out", **FIXED)
    np.testing.assert_allclose(made.to_dense(), co.complete(M, **FIXED).to_dense(), rtol=1e-12, atol=1e-12)
    Url("memory://somewhere").remove_tree()


@pytest.mark.parametrize("stage", ["grouping", "solving"])
@pytest.mark.slow
def test_an_interrupted_run_is_continued_by_its_records(given, place, options, tmp_path, stage):
    there, here = given

    class Killed(BaseException):
        pass

    def progress(now, done, total):
        if now == stage:
            raise Killed

    settings = {"block_entries": 100, "storage_options": options, **FIXED}
    with pytest.raises(Killed):
        co.complete_triples(there, f"{place}/out", progress=progress, **settings)
    with pytest.raises(FileNotFoundError, match="has not ended"):
        co.Completion.load(f"{place}/out", storage_options=options)
    with pytest.raises(FileExistsError, match="unfinished run"):
        co.complete_triples(there, f"{place}/out", **settings)
    with pytest.raises(FileExistsError, match="other settings"):
        co.complete_triples(there, f"{place}/out", resume=True, **{**settings, "rank": 2})
    made = co.complete_triples(there, f"{place}/out", resume=True, **settings)
    assert_same(made, co.complete_triples(here, tmp_path / "out", block_entries=100, **FIXED))
    again = co.complete_triples(there, f"{place}/out", resume=True, **settings)
    assert_same(again, made)


@pytest.mark.parametrize("stage", ["sorting", "grouping"])
def test_a_file_that_disappears_is_named(given, place, options, stage):
    there, _ = given

    def progress(now, done, total):
        if now == stage:
            Url(f"{there}/2.parquet", options).unlink(missing_ok=True)

    with pytest.raises(FileNotFoundError, match=r"there is no such file.*/x/2\.parquet"):
        co.complete_triples(there, f"{place}/out", progress=progress, storage_options=options, **FIXED)


@pytest.mark.slow
def test_a_result_is_replaced_when_the_new_one_is_complete(given, place, options):
    there, _ = given
    old = co.complete_triples(there, f"{place}/out", storage_options=options, **FIXED)
    with pytest.raises(FileExistsError, match="it exists"):
        co.complete_triples(there, f"{place}/out", storage_options=options, **{**FIXED, "rank": 2})
    seen = []

    def progress(stage, done, total):
        if stage == "solving":
            seen.append(co.Completion.load(f"{place}/out", storage_options=options).rank)

    forced = {**FIXED, "rank": 2, "force": True, "progress": progress, "storage_options": options}
    new = co.complete_triples(there, f"{place}/out", **forced)
    assert (old.rank, set(seen), new.rank) == (3, {3}, 2)
    assert len({name.split("/")[0] for name in names_below(f"{place}/out", options)}) == 2
    (Url(place, options) / "mine/notes.txt").write_bytes(b"x")
    with pytest.raises(FileExistsError, match="other things"):
        co.complete_triples(there, f"{place}/mine", storage_options=options, **FIXED)


def test_the_command_line_names_an_unfinished_run_before_it_reads(given, place, options, run, monkeypatch):
    there, _ = given
    how = "-o", f"{place}/out", "--engine", "local", "--rank", "3", *as_words(options)
    with monkeypatch.context() as now:
        now.setattr("colonnade.scaling.blocks.grouped", lambda *_: (_ for _ in ()).throw(OSError("no disk")))
        assert run("complete", there, *how)[0] == 5
    for force in ([], ["--force"]):
        code, _, err = run("complete", there, *how, *force)
        assert code == 5 and "an unfinished run is in" in err and "--resume" in err
    assert run("complete", there, *how, "--resume")[0] == 0


def test_names_with_signs_of_patterns_spaces_and_other_letters(place, options, run):
    _, table = triples(np.random.default_rng(2))
    folder, part = "a b=c*[1]?\u00fc#%41+&", "part=1 [2]* \u65e5\u672c.parquet"
    put(place, f"{folder}/{part}", table, options)
    for address in (f"{place}/{folder}", f"{place}/{folder}/", f"{place}/{folder}/{part}"):
        assert co.read(address, storage_options=options).values.size == table["value"].size
    there = Url(place, options) / folder
    for name in ("left/1", "left[1]/1", "left*/a/[2]", "leftover"):
        (there / name).write_bytes(b"x")
    for name in ("left[1]", "left*"):
        (there / name).remove_tree()
    assert names_below(str(there), options) == ["left/1", "leftover", part]
    out = f"{place}/out {folder}"
    made = co.complete_triples(f"{place}/{folder}/", out, storage_options=options, **FIXED)
    assert_same(co.Completion.load(out, storage_options=options), made)


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(storage, "_FIRST_WAIT", 0.01)


@pytest.fixture
def proxy(server, quick):
    with faulty_proxy(server, pause=lambda: time.sleep(3)) as (endpoint, faults):
        yield {**OPTIONS, "endpoint_url": endpoint}, faults


def reads(method, path):
    return method == "GET" and ".parquet" in path


def writes(method, path):
    return method == "PUT" and ".npy" in path


@pytest.mark.parametrize(
    "kind, wanted",
    [("503", reads), ("503", writes), ("cut read", reads), ("cut write", writes), ("slow", reads)],
    ids=["503 to a read", "503 to a write", "a read that is cut", "a write that is cut", "a slow answer"],
)
@pytest.mark.slow
def test_faults_of_the_network_change_no_byte(given, place, proxy, tmp_path, kind, wanted):
    there, here = given
    options, faults = proxy
    if kind == "slow":  # it is asked again before the answer comes
        options["config_kwargs"] = {"connect_timeout": 1, "read_timeout": 1, "retries": {"max_attempts": 0}}
    faults.set(kind, 2, wanted)
    made = co.complete_triples(there, f"{place}/out", block_entries=300, storage_options=options, **FIXED)
    assert faults.seen == 2
    assert_same(made, co.complete_triples(here, tmp_path / "out", block_entries=300, **FIXED))


@pytest.mark.parametrize("kind, wanted", [("503", reads), ("cut read", reads), ("cut write", writes)])
@pytest.mark.slow
def test_faults_that_stay_are_one_sentence(given, place, proxy, kind, wanted):
    there, _ = given
    options, faults = proxy
    faults.set(kind, 10_000, wanted)
    with pytest.raises(OSError, match=r"s3://bucket/.* cannot be (read|written) after 5 attempts: .*check the network"):
        co.complete_triples(there, f"{place}/out", block_entries=300, storage_options=options, **FIXED)
    faults.set(None, 0)
    co.complete_triples(there, f"{place}/out", block_entries=300, storage_options=options, resume=True, **FIXED)


@pytest.mark.parametrize("wanted", [reads, writes])
def test_a_missing_permission_is_not_tried_again(given, place, proxy, wanted):
    there, _ = given
    options, faults = proxy
    faults.set("403", 10_000, wanted)
    with pytest.raises(PermissionError, match=r"access is denied, so it cannot be (read|written)"):
        co.complete_triples(there, f"{place}/out", block_entries=300, storage_options=options, **FIXED)
    assert faults.seen <= 16  # writers in the background


def test_the_footer_of_a_file_is_one_request(given, place, proxy, run):
    there, _ = given
    options, faults = proxy
    asked = []
    faults.set("none", 0)
    faults.wanted, faults.left = lambda method, path: asked.append((method, path)) if ".parquet" in path else None, -1
    code, out, _ = run("complete", there, "--dry-run", "--engine", "local", *as_words(options))
    assert code == 0 and "entries of a 40 x 90 matrix" in out
    assert sorted(method for method, _ in asked) == ["GET"] * 3


def as_words(options):
    return [word for key, value in options.items() for word in ("--storage-option", f"{key}={value}")]


def test_the_command_line(given, place, options, folder, run, caplog):
    there, here = given
    caplog.set_level(logging.DEBUG, "colonnade")
    settings = "--engine", "local", "--rank", "3"
    code, out, err = run("complete", there, "-o", f"{place}/out", *as_words(options), *settings)
    assert (code, err) == (0, "") and f"Written: {place}/out" in out
    code, out, err = run("complete", f"{there}/*.parquet", "-o", f"{place}/m", "--engine", "memory", *as_words(options))
    assert (code, err) == (0, "")
    assert run("complete", here, "-o", "here", *settings)[0] == 0
    assert_same(co.Completion.load(f"{place}/out", storage_options=options), co.Completion.load("here"))
    assert run("inspect", f"{there}/*.parquet", *as_words(options))[0] == 0
    code, out, err = run("complete", there, "-o", f"{place}/out", *as_words(options), *settings)
    assert code == 2 and "exists" in err
    stored = b"".join(found.read_bytes() for found in Url(place, options).rglob("*.json"))
    for secret in SECRETS:
        assert secret.encode() not in stored and secret not in caplog.text + out + err
    facts = json.loads((Url(place, options) / "m/facts.json").read_text())
    assert "key=..." in facts["run"]["command"]


def test_errors_of_the_command_line(given, place, proxy, folder, run):
    there, _ = given
    options, faults = proxy
    faults.set("503", 10_000, reads)
    code, _, err = run("complete", there, "-o", f"{place}/out", "--engine", "local", *as_words(options))
    assert code == 5 and "after 5 attempts" in err and err.count("\n") == 1
    faults.set("403", 10_000)
    code, _, err = run("complete", there, "-o", f"{place}/out", "--engine", "local", *as_words(options))
    assert code == 5 and "access is denied" in err and err.count("\n") == 1
    assert not any(secret in err for secret in SECRETS)
    code, _, err = run("complete", there, "--storage-option", "my-secret")
    assert code == 2 and "my-secret" not in err and "KEY=VALUE" in err


def test_secrets_are_neither_shown_nor_compared(options):
    url = Url("https://user:password@host/x.parquet?X-Amz-Signature=abc", options)
    assert str(url) == "https://host/x.parquet" and "password" not in repr(url)
    assert url.suffix == ".parquet" and "Signature=abc" in url.address
    words = ["complete", "https://u:p@h/x", "--storage-option", "secret=s3cr3t", "--storage-option=key=k3y", "-o", "y"]
    expected = ["complete", "https://h/x", "--storage-option", "secret=...", "--storage-option=key=...", "-o", "y"]
    assert without_secrets(words) == expected
    error = storage._without_secrets(ValueError("bad testing-secret at http://a:b@c/"), options)
    assert error == "bad *** at http://c/"


@pytest.mark.parametrize("scheme", ["s3", "s3a", "gs", "gcs"])
def test_keys_in_an_address_are_refused_and_not_shown(run, scheme):
    with pytest.raises(ValueError, match="no key and no password") as refused:
        co.read(f"{scheme}://AKIA1:hunter2@bucket/x.parquet")
    assert "hunter2" not in str(refused.value) and "AKIA1" not in str(refused.value)
    code, out, err = run("complete", f"{scheme}://AKIA1:hunter2@bucket/x/", "-o", "y")
    assert code == 2 and err.count("\n") == 1 and "hunter2" not in out + err and "--storage-option" in err


def test_a_name_that_no_bucket_has_is_not_tried_again(options, monkeypatch):
    monkeypatch.setattr(storage.time, "sleep", lambda _: pytest.fail("it was tried again"))
    with pytest.raises(ValueError, match=r"cannot be looked up: .*Invalid bucket name"):
        co.read("s3://two words/x/", storage_options=options)


@pytest.mark.parametrize("code", [503, 400, 401, None])
def test_a_signature_in_an_address_of_the_web_is_not_shown(quick, code):
    _, table = triples(np.random.default_rng(6))
    with web_of(table, [code] * 10_000) as address, pytest.raises(OSError) as refused:
        co.read(address.replace("://", "://user:hunter2@") + "?X-Amz-Signature=hunter3&x=hunter4%2F")
    said = str(refused.value) + repr(refused.value)
    assert "hunter" not in said and "t.parquet" in said


def test_what_is_an_address(tmp_path):
    assert isinstance(as_path("s3://b/x"), Url) and not isinstance(as_path("C:/x"), Url)
    assert as_path(f"file://{tmp_path}") == tmp_path and as_path(tmp_path) == tmp_path
    assert options_of(["anon=true", "a=b=c", 'config_kwargs={"read_timeout": 3}', "n=12"]) == {
        "anon": True,
        "a": "b=c",
        "config_kwargs": {"read_timeout": 3},
        "n": "12",
    }
    with pytest.raises(ValueError, match="KEY=VALUE"):
        options_of(["nothing"])
    with pytest.raises((ModuleNotFoundError, ValueError), match="nowhere://"):
        co.read("nowhere://bucket/x.parquet")
