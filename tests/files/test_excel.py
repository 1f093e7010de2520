"""Workbooks of Excel: exact numbers in and out, filled cells marked, text never a formula, traps refused."""

import datetime as dt
import zipfile

import numpy as np
import pytest

import colonnade as co
from colonnade.files import read, write

openpyxl = pytest.importorskip("openpyxl")
EXTREME = [5e-324, 1.7976931348623157e308, 2.0**53, 1e22, 1e-7, 0.1 + 0.2, -1 / 3, 1e15 + 0.5, -0.5, 123456789.125]


def save(path, rows, **sheets):
    """A workbook with these rows in its first sheet; text stays text."""
    book = openpyxl.Workbook()
    book.active.title = "Data"
    for name, lines in {"Data": rows, **sheets}.items():
        sheet = book["Data"] if name == "Data" else book.create_sheet(name)
        for i, line in enumerate(lines, 1):
            for j, value in enumerate(line, 1):
                is_float = isinstance(value, float)
                cell = sheet.cell(i, j, repr(value) if is_float else value)  # openpyxl would write 16 digits.
                if is_float or isinstance(value, str):
                    cell.data_type = "n" if is_float else "s"
    book.save(path)
    return book


def dense(o):
    M = np.full(o.shape, np.nan)
    M[o.rows, o.entry_columns] = o.values
    return M


def gappy(seed=0, shape=(24, 5)):
    rng = np.random.default_rng(seed)
    M = rng.standard_normal((shape[0], 2)) @ rng.standard_normal((2, shape[1]))
    M += 0.05 * rng.standard_normal(shape)
    M[rng.random(shape) < 0.2] = np.nan
    return M


def as_rows(M, header=None, names=None):
    body = [[None if np.isnan(x) else float(x) for x in row] for row in M]
    if names is not None:
        body = [[name, *row] for name, row in zip(names, body)]
    return ([header] if header else []) + body


def test_numbers_come_in_and_go_out_with_the_same_bits(tmp_path, seed):
    M = gappy(seed) * 10.0 ** np.random.default_rng(seed).integers(-6, 7, (24, 5))
    M.ravel()[: len(EXTREME)] = EXTREME
    save(tmp_path / "t.xlsx", as_rows(M, list("abcde")))
    np.testing.assert_array_equal(dense(read(tmp_path / "t.xlsx")), M)
    M = gappy(seed)
    save(tmp_path / "t.xlsx", as_rows(M, list("abcde")))
    filled = co.complete(read(tmp_path / "t.xlsx"))
    write(filled, tmp_path / "out.xlsx")
    again = read(tmp_path / "out.xlsx")
    np.testing.assert_array_equal(dense(again), filled.to_dense())
    assert list(again.column_names) == list("abcde") and again.origin.key == "Data"


def test_filled_cells_are_marked_and_only_they(tmp_path):
    M = gappy(1)
    days = [dt.datetime(2024, 1, 1) + dt.timedelta(k) for k in range(len(M))]
    save(tmp_path / "t.xlsx", as_rows(M, ["day", *"abcde"], days))
    o = read(tmp_path / "t.xlsx")
    assert o.row_names[1] == "2024-01-02"
    filled = co.complete(o)
    write(filled, tmp_path / "out.xlsx", intervals=0.8)
    book = openpyxl.load_workbook(tmp_path / "out.xlsx")
    assert book.sheetnames == ["Data", "Legend"]
    cells = list(book["Data"].iter_rows(min_row=2))
    marked = np.array([[cell.fill.fill_type == "solid" for cell in row[1:]] for row in cells])
    np.testing.assert_array_equal(marked, np.isnan(M))
    assert [row[0].value for row in cells] == days
    legend = [[cell.value for cell in row] for row in book["Legend"].iter_rows()]
    assert f"{np.isnan(M).sum()} of {M.size} cells" in legend[1][1]
    at = legend.index(["row", "column", "value", "low", "high"])
    table, places = legend[at + 1 :], np.argwhere(np.isnan(M))
    assert len(table) == len(places) and "probability 0.8" in legend[at - 1][1]
    low, high = filled.interval(*places.T, 0.8)
    for (i, j), line, *ends in zip(places, table, low, high):
        assert line == [str(o.row_names[i]), "abcde"[j], filled.to_dense()[i, j], *ends]


def test_rows_to_fill_are_turned_back(tmp_path):
    M = gappy(2)
    save(tmp_path / "t.xlsx", as_rows(M, list("abcde")))
    filled = co.complete(read(tmp_path / "t.xlsx", transpose=True))
    write(filled, tmp_path / "out.xlsx", intervals=0.9)
    np.testing.assert_array_equal(dense(read(tmp_path / "out.xlsx")), filled.to_dense().T)
    sheet = openpyxl.load_workbook(tmp_path / "out.xlsx")["Data"]
    marked = [[cell.fill.fill_type == "solid" for cell in row] for row in sheet.iter_rows(min_row=2)]
    np.testing.assert_array_equal(marked, np.isnan(M))


def test_text_dates_and_booleans_are_set_aside_and_come_back(tmp_path):
    M = gappy(3, (20, 4))
    evil = ["=1+1", "@x", "+2", "-a", "#N/A", "NA", "\tq", " blank ", "'=x", "line\nend"] * 2
    when, flags = [dt.datetime(2024, 5, 17, 6, k) for k in range(20)], [k % 3 == 0 for k in range(20)]
    rows = [[f"r{i}", *row, evil[i], when[i], flags[i]] for i, row in enumerate(as_rows(M))]
    save(tmp_path / "t.xlsx", [["=n()", "a", "b", "c", "=SUM(A1)", "note", "when", "ok"], *rows])
    o = read(tmp_path / "t.xlsx", row_names=True)
    assert o.origin.aside.kinds == ("text", "dates", "Booleans")
    write(co.complete(o), tmp_path / "out.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "out.xlsx")["Data"]
    cells = [list(row) for row in sheet.iter_rows()]
    assert not any(cell.data_type == "f" for row in cells for cell in row)
    assert [cell.value for cell in cells[0]] == ["=n()", "a", "b", "c", "=SUM(A1)", "note", "when", "ok"]
    assert [row[5].value for row in cells[1:]] == evil
    assert [row[6].value for row in cells[1:]] == when and [row[7].value for row in cells[1:]] == flags


@pytest.mark.slow
def test_other_kinds_from_and_to_workbooks(tmp_path):
    pandas = pytest.importorskip("pandas")
    M = gappy(4)
    frame = pandas.DataFrame(M, columns=list("abcde")).assign(word="=1", when=pandas.Timestamp("2024-01-01", tz="UTC"))
    write(co.complete(frame), tmp_path / "f.xlsx")
    o = read(tmp_path / "f.xlsx", row_names=False)
    assert o.shape == M.shape and o.origin.aside.names == ("word", "when")
    write(co.complete(o, method="factor model"), tmp_path / "f.csv")
    assert read(tmp_path / "f.csv", row_names=False).origin.aside.names == ("word", "when")


def test_number_formats_and_whole_numbers_stay(tmp_path):
    book = save(tmp_path / "t.xlsx", [["a", "b", "c"], *[[k, k / 7, None if k == 3 else k / 3] for k in range(12)]])
    for row in book["Data"].iter_rows(min_row=2):
        row[1].number_format = "0.00%"
    book.save(tmp_path / "t.xlsx")
    write(co.complete(read(tmp_path / "t.xlsx", row_names=False)), tmp_path / "out.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "out.xlsx")["Data"]
    assert sheet["B4"].number_format == "0.00%" and sheet["A4"].value == 2 and isinstance(sheet["A4"].value, int)


def test_sheets_are_chosen_by_name_or_position(tmp_path):
    path = tmp_path / "t.xlsx"
    save(path, [["a", "b"], [1, 2], [3, 4]], Other=[["c", "d"], [5, 6], [7, 8]], Empty=[])
    assert list(read(path).column_names) == ["a", "b"]
    assert list(read(path, sheet="Other").column_names) == list(read(path, sheet="1").column_names) == ["c", "d"]
    for name in ("x", "\N{SUPERSCRIPT TWO}", "3"):
        with pytest.raises(ValueError, match=f"has no sheet '{name}'; it has 'Data', 'Other', 'Empty'"):
            read(path, sheet=name)
    with pytest.raises(ValueError, match="'Empty', is empty; name another one with --sheet"):
        read(path, sheet="Empty")


def test_a_table_may_begin_anywhere(tmp_path):
    path = tmp_path / "t.xlsx"
    save(path, [[], [], [None, None, "a", "b"], [None, None, 1, None], [None, None, 3.5, 4], [None]])
    o = read(path)
    np.testing.assert_array_equal(dense(o), [[1, np.nan], [3.5, 4]])
    save(path, [[], [None, "a", "b"], [None, 1, 2], [None, 3, "x"]])
    with pytest.raises(ValueError, match=r"cell C4 of sheet 'Data' in .* holds 'x', and cell C3 .* the number 2"):
        read(path)


@pytest.mark.parametrize("where", ["A1:B1", "B2:B3"])
def test_merged_cells_are_refused(tmp_path, where):
    book = save(tmp_path / "t.xlsx", [["a", "b"], [1, 2], [3, 4]])
    book["Data"].merge_cells(where)
    book.save(tmp_path / "t.xlsx")
    with pytest.raises(ValueError, match=rf"the cells {where} of .* are merged\. Unmerge them"):
        read(tmp_path / "t.xlsx")


def test_formulas_without_a_result_are_refused(tmp_path):
    book = save(tmp_path / "t.xlsx", [["a", "b"], [1, 2], [3, 4]])
    book["Data"]["B3"] = "=A1+1"
    book.save(tmp_path / "t.xlsx")
    with pytest.raises(ValueError, match=r"cell B3 of .* holds a formula without a result: open the file"):
        read(tmp_path / "t.xlsx")


def test_wrong_files_are_refused(tmp_path):
    save(tmp_path / "good.xlsx", [["a", "b"], [1, 2], [3, 4]])
    content = (tmp_path / "good.xlsx").read_bytes()
    cases = {
        "cut.xlsx": (content[: len(content) // 2], "cut.xlsx is damaged or incomplete: copy or download it again"),
        "old.xlsx": (b"\xd0\xcf\x11\xe0" + bytes(600), "old or encrypted"),
        "text.xlsx": (b"a,b\n1,2\n", "is not xlsx"),
        "array.npz": (content, "begins like xlsx"),
    }
    for name, (bytes_of, words) in cases.items():
        (tmp_path / name).write_bytes(bytes_of)
        with pytest.raises(ValueError, match=words):
            read(tmp_path / name)
    (tmp_path / "noending").write_bytes(content)
    assert read(tmp_path / "noending").shape == (2, 2)


@pytest.mark.slow
def test_what_would_not_fit_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "bomb.xlsx"
    save(tmp_path / "good.xlsx", [["a", "b"], [1, 2]])
    with zipfile.ZipFile(tmp_path / "good.xlsx") as good, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bomb:
        for name in good.namelist():
            part = good.read(name)
            bomb.writestr(name, part + b" " * 30_000_000 if name.endswith("sheet1.xml") else part)
    assert path.stat().st_size < 100_000
    with pytest.raises(MemoryError, match=r"sheet 'Data', declares 30\.0 MB"):
        read(path, memory_limit=20e6)
    rows = [["a", *[None] * 3000, "b"], *[[k, *[None] * 3000, 2.0] for k in range(220)]]
    save(path, [*rows])
    with pytest.raises(MemoryError, match="save the sheet as csv"):
        read(path, memory_limit=10e6)


def changed(path, changes):
    """A small workbook with some of its parts changed by functions of their bytes."""
    save(path, [["a", "b"], [1, 2.5], ["x", 4.5]])
    with zipfile.ZipFile(path) as good:
        parts = {name: good.read(name) for name in good.namelist()}
    assert set(changes) <= set(parts)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bad:
        for name, part in parts.items():
            bad.writestr(name, changes[name](part) if name in changes else part)
    return path


@pytest.mark.parametrize("part", ["xl/workbook.xml", "xl/_rels/workbook.xml.rels", "xl/styles.xml", "docProps/app.xml"])
def test_every_part_that_is_read_counts(tmp_path, part):
    path = changed(tmp_path / "bomb.xlsx", {part: lambda content: content + b" " * 30_000_000})
    with pytest.raises(MemoryError, match=r"bomb.xlsx declares 30\.0 MB"):
        read(path, memory_limit=20e6)


@pytest.mark.parametrize("row", [b"99999999999", b"1048577"])
@pytest.mark.slow
def test_rows_are_not_made_up(tmp_path, row):
    sheet = {"xl/worksheets/sheet1.xml": lambda content: content.replace(b'<row r="3"', b'<row r="' + row + b'"')}
    with pytest.raises(ValueError, match="it has more than 1,048,576 rows"):
        read(changed(tmp_path / "t.xlsx", sheet))


@pytest.mark.parametrize(
    ("part", "old", "new"),
    [
        ("xl/worksheets/sheet1.xml", b"2.5", b"two"),
        ("xl/worksheets/sheet1.xml", b'r="A2"', b'r="ZZZZ2"'),
        ("xl/worksheets/sheet1.xml", b't="n"><v>1<', b't="s"><v>99<'),  # There are no 99 texts that cells share.
        ("xl/workbook.xml", b'sheetId="1"', b'sheetId="one"'),
        ("xl/styles.xml", b"<", b"&"),
        ("[Content_Types].xml", b"sheet.main", b"other"),
    ],
)
def test_wrong_content_is_refused_with_the_name_of_the_file(tmp_path, part, old, new):
    def with_new(content):
        assert old in content
        return content.replace(old, new)

    with pytest.raises(ValueError, match=r"t\.xlsx is damaged or not an xlsx file: "):
        read(changed(tmp_path / "t.xlsx", {part: with_new}))


@pytest.mark.slow
def test_a_damaged_byte_anywhere_is_survived(tmp_path):
    """Read, or refused with a sentence that names the file."""
    save(tmp_path / "t.xlsx", [["a", "b"], [1, 2.5], [3, 4.5]])
    content, rng = (tmp_path / "t.xlsx").read_bytes(), np.random.default_rng(0)
    for at in rng.integers(len(content), size=300):
        (tmp_path / "t.xlsx").write_bytes(content[:at] + bytes([content[at] ^ 0x55]) + content[at + 1 :])
        try:
            read(tmp_path / "t.xlsx")
        except (ValueError, MemoryError) as error:
            assert "t.xlsx" in str(error)


def test_features_that_are_not_read_raise_no_warning(tmp_path):
    """Such as dates that Excel does not know; openpyxl warns of them, and pytest makes warnings errors."""
    save(tmp_path / "t.xlsx", [["a", "b", "c"], [1, 2.5, dt.date(2020, 1, 1)], [3, 4.5, dt.date(2020, 1, 2)]])
    with zipfile.ZipFile(tmp_path / "t.xlsx") as good:
        parts = {name: good.read(name) for name in good.namelist()}
    with zipfile.ZipFile(tmp_path / "t.xlsx", "w") as bad:
        for name, part in parts.items():
            bad.writestr(name, part.replace(b"<v>43831</v>", b"<v>1e400</v>"))
    assert dense(read(tmp_path / "t.xlsx")).tolist() == [[1, 2.5], [3, 4.5]]


def test_sheets_have_limits(tmp_path):
    wide = co.complete(np.ones((1, 17_000)))
    with pytest.raises(ValueError, match="at most 1,048,576 rows and 16,384 columns"):
        write(wide, tmp_path / "w.xlsx")
    assert list(tmp_path.iterdir()) == []
