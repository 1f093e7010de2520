"""Text tables as spreadsheets write them: every dialect gives the same bits, and what is ambiguous is refused."""

import codecs
from itertools import product

import numpy as np
import pytest

import colonnade as co
from colonnade.files import read, write
from colonnade.files.tables.numerals import Numerals

EXTREME = [5e-324, 1.7976931348623157e308, 2.0**53, 1e22, 1e-7, 123456789.125, 0.1 + 0.2, 1 / 3, 1e15 + 0.5, 999.9995]
ENCODINGS = ["utf-8", "utf-8-sig", "cp1252", "utf-16", "utf-16-be-mark", "utf-32"]


def digits(x: float, decimal: str, thousands: str) -> str:
    """The shortest text that reads back to `x`, in a dialect."""
    text = repr(float(x))
    if "e" in text or "inf" in text:
        return text.replace(".", decimal)
    sign, text = ("-", text[1:]) if text.startswith("-") else ("", text)
    whole, _, rest = text.partition(".")
    if thousands:
        whole = f"{int(whole):,}".replace(",", thousands)
    return sign + whole + (decimal + rest if rest != "0" else "")


def numbers_of(seed: int, shape=(12, 4)) -> np.ndarray:
    rng = np.random.default_rng(seed)
    M = rng.standard_normal(shape) * 10.0 ** rng.integers(-4, 9, shape)
    M = np.where(rng.random(shape) < 0.3, np.rint(M), M)
    M.ravel()[: len(EXTREME)] = EXTREME
    M[rng.random(shape) < 0.2] = np.nan
    M[0], M[1, 0] = 0.5, 1234567.5  # Cells that can be read in one way only.
    return M


def written(M, delimiter, decimal, thousands, unit=("", ""), names=True) -> str:
    def cell(x):
        if np.isnan(x):
            return ""
        text = unit[0] + digits(abs(x), decimal, thousands) + unit[1]
        text = "-" + text if x < 0 else text
        return f'"{text}"' if delimiter in text else text

    lines = [delimiter.join([f"ü{i}" for _ in range(names)] + [cell(x) for x in row]) for i, row in enumerate(M)]
    header = delimiter.join(["näme"] * names + [f"c{j}é" for j in range(M.shape[1])])
    return "\n".join([header, *lines]) + "\n"


def encoded(text: str, encoding: str) -> bytes:
    if encoding == "utf-16-be-mark":
        return codecs.BOM_UTF16_BE + text.encode("utf-16-be")
    return text.encode(encoding)


def dense(o) -> np.ndarray:
    M = np.full(o.shape, np.nan)
    M[o.rows, o.entry_columns] = o.values
    return M


@pytest.mark.parametrize("decimal", ".,")
@pytest.mark.parametrize("delimiter", ",;\t")
def test_every_dialect_gives_the_same_bits(tmp_path, delimiter, decimal):
    marks = ["", "." if decimal == "," else ",", "'", "\u2019", "\u00a0", "\u202f"]
    units = [("", ""), ("€ ", ""), ("$", ""), ("", " €"), ("", "%"), ("£", "")]
    for seed, (mark, unit) in enumerate(product(marks, units)):
        M, path = numbers_of(seed), tmp_path / "t.csv"
        path.write_bytes(encoded(written(M, delimiter, decimal, mark, unit), "utf-8"))
        o = read(path)
        np.testing.assert_array_equal(dense(o), M, err_msg=f"{mark!r} {unit!r}")
        assert list(o.row_names) == [f"ü{i}" for i in range(len(M))]
        assert list(o.column_names) == [f"c{j}é" for j in range(M.shape[1])]


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("decimal", ".,")
def test_every_encoding_gives_the_same_names_and_bits(tmp_path, encoding, decimal):
    M, path = numbers_of(7), tmp_path / "t.csv"
    path.write_bytes(encoded(written(M, ";", decimal, "", ("€ ", "")), encoding))
    o = read(path)
    np.testing.assert_array_equal(dense(o), M)
    assert o.row_names[0] == "ü0" and o.column_names[1] == "c1é"


DIALECTS = [(";", ","), (";", "."), ("\t", ","), (",", ",")]


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize(("delimiter", "decimal"), DIALECTS)
def test_what_is_written_is_read_again_in_the_same_dialect(tmp_path, encoding, delimiter, decimal):
    """Every unit beside every encoding and beside every dialect."""
    which = ENCODINGS.index(encoding) + DIALECTS.index((delimiter, decimal))
    unit = [("", ""), ("€ ", ""), ("", "%")][which % 3]
    rng = np.random.default_rng(3)
    M = rng.standard_normal((20, 2)) @ rng.standard_normal((2, 5)) * 1000
    M[rng.random(M.shape) < 0.15] = np.nan
    M[0] = 0.5
    path, out = tmp_path / "t.txt", tmp_path / "out.txt"
    path.write_bytes(encoded(written(M, delimiter, decimal, "", unit), encoding))
    filled = co.complete(read(path), method="soft_impute")
    write(filled, out)
    content = out.read_bytes()
    assert content.startswith(path.read_bytes()[:2]) or encoding in ("utf-8", "cp1252")
    again = read(out)
    np.testing.assert_array_equal(dense(again), filled.to_dense())
    assert again.origin.delimiter == delimiter and again.origin.decimal == decimal
    assert again.origin.encoding == read(path).origin.encoding
    assert again.origin.units == ({} if unit == ("", "") else dict.fromkeys(range(5), unit))
    assert list(again.row_names) == list(read(path).row_names)


@pytest.mark.parametrize(
    "text",
    [
        'a,b\n"1,234","2,500"\n"1,111","9,222"\n,"3,111"\n',
        "a;b\n1,234;2,500\n1,111;9,222\n",
        "a;b\n1.234;2.500\n1.111;9.222\n",
        "a;b\n1.234;5\n1.111;6\n",
        "a\tb\n1,234\t5\n1,111\t6\n",
        'a,b\n"$1,200",5\n"$1,300",7\n',
        "a,b\n5," + '"1,234"\n',
    ],
)
def test_numbers_with_two_readings_are_refused_and_told(tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"can be \d[.]\d{3} or \d{4}, and no other cell decides: say --decimal"):
        read(path)
    point, comma = dense(read(path, decimal=".")), dense(read(path, decimal=","))
    assert np.nanmax(np.abs(np.log10(point) - np.log10(comma))) == pytest.approx(3)
    groups = "," if ("," in text.replace("a,b", "") and '"' in text) or "1,234;" in text or "1,234\t" in text else "."
    np.testing.assert_array_equal(dense(read(path, thousands=groups)), point if groups == "," else comma)


@pytest.mark.parametrize("far", [0, 50, 4_000])
def test_a_single_cell_anywhere_decides(tmp_path, far):
    path = tmp_path / "t.csv"
    lines = ["1,234;2,500"] * 5_000
    path.write_text("a;b\n" + "\n".join([*lines[:far], "1,25;7", *lines]) + "\n")
    M = dense(read(path))
    assert M[far].tolist() == [1.25, 7] and M[-1].tolist() == [1.234, 2.5]
    path.write_text("a;b\n" + "\n".join([*lines[:far], "1,234.5;7", *lines]) + "\n")
    M = dense(read(path))
    assert M[far].tolist() == [1234.5, 7] and M[-1].tolist() == [1234, 2500]


@pytest.mark.parametrize("far", [1, 5_000])
def test_files_that_write_numbers_in_two_ways_are_refused(tmp_path, far):
    path = tmp_path / "t.csv"
    path.write_text("a;b\n" + "0,5;0,25\n" * far + "1,5;0.75\n")
    with pytest.raises(ValueError, match=r"0.75.*decimal comma.*--decimal|in two ways"):
        read(path)
    path.write_text("a;b\n" + "0,5;0.25\n" * far)
    with pytest.raises(ValueError, match=r"in two ways: '0.25' in .*decimal point, and '0,5' .* decimal comma"):
        read(path)


@pytest.mark.parametrize("other", ["1.250", "1234", "2500.5"])
def test_a_comma_that_may_be_a_typo_is_refused(tmp_path, other):
    path = tmp_path / "t.csv"
    path.write_text(f'a,b\n0.5,"1,234"\n0.75,{other}\n')
    with pytest.raises(ValueError, match=r"'1,234' in line 2, column 'b'.* it is not clear .*--thousands"):
        read(path)
    assert dense(read(path, thousands=",", decimal="."))[0, 1] == 1234
    path.write_text(f'a,b\n0.5,"1,234"\n0.75,{other}\n0.5,"1,234.5"\n')
    assert dense(read(path))[:, 1].tolist() == [1234, float(other), 1234.5]


def test_units_belong_to_a_column(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;b;c\n12%;$1;0,5\n13,5%;;0,75\n;-$2,5;1\n")
    o = read(path)
    np.testing.assert_array_equal(dense(o), [[12, 1, 0.5], [13.5, np.nan, 0.75], [np.nan, -2.5, 1]])
    assert o.origin.units == {0: ("", "%"), 1: ("$", "")}
    path.write_text("a;b\n12%;1\n13;2\n")
    with pytest.raises(ValueError, match=r"column 'a' of .* different units, such as 'number' and 'number%'"):
        read(path)
    path.write_text("a;b\n12 €;1\n13 $;2\n")
    with pytest.raises(ValueError, match="different units"):
        read(path)


ACCOUNTS = ["(400)", "($1,200.5)", "$(400)", "400-", "1,200.50-", "-400", "(12%)", "(.5)", "12\u2212", "(0)"]


def test_accounting_negatives_are_read():
    plain = [Numerals().plain(cell) for cell in ACCOUNTS]
    assert plain == ["-400", "-1200.5", "-400", "-400", "-1200.50", "-400", "-12", "-.5", "-12", "-0"]
    assert Numerals(",").plain("(1.200,5)") == "-1200.5"
    for other in ("(400", "400)", "-(400)", "(-400)", "(030)", "030-", "(400)-", "4-5", "()", "-", "(a)", "inf-"):
        assert not Numerals().is_number(other), other


@pytest.mark.parametrize("far", [0, 500])
def test_accounting_negatives_of_files(tmp_path, far):
    path = tmp_path / "t.csv"
    cells = {"(400)": -400, "$(1,200.5)": -1200.5, "400-": -400}
    for cell, number in cells.items():
        unit = "$" if "$" in cell else ""
        lines = [f"{unit}{k}.5,{k}" for k in range(far + 2)]
        path.write_text("\n".join(["a,b", *lines, f'"{cell}",1', ""]))
        assert dense(read(path))[-1].tolist() == [number, 1]
    path.write_text('a;b\n"(1,200)";1\n(3);2\n')
    with pytest.raises(ValueError, match=r"'\(1,200\)' in line 2, column 'a' of .* can be 1.200 or 1200"):
        read(path)


def test_infinite_cells_are_refused_by_line_and_column(tmp_path):
    path = tmp_path / "t.csv"
    for cell in ("1e400", "-inf"):
        path.write_text(f"a,b\n1,2\n\n3,{cell}\n")
        with pytest.raises(
            ValueError, match=r"t.csv in line 4, column 'b' is infinite or above 1.8e308 .1 in all.: leave it empty"
        ):
            read(path)


def test_outliers_are_named_by_the_line_of_the_file(tmp_path):
    path = tmp_path / "t.csv"
    M = np.outer(np.arange(1, 31), [1, 2, 3, 4.5]) + np.random.default_rng(0).standard_normal((30, 4))
    M[3, 1], M[7, 2] = np.nan, 1e7
    path.write_text("a,b,c,d\n\n" + "\n".join(",".join("" if np.isnan(x) else f"{x:.3f}" for x in row) for row in M))
    for turned in (False, True):
        o = read(path, transpose=turned)
        words = co.complete(o, random_state=0).choices["suspicious values"]
        assert words.startswith("row 'c' of column 7 (line 10) is" if turned else "row 7 (line 10) of column 'c' is")


def test_lines_above_the_names_are_said_to_be_in_the_way(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("Sales,,\n,,\nshop,q1,q2\na,1,2\nb,2,3\n")
    with pytest.raises(ValueError, match="If that line holds the names of the columns, delete the lines above it"):
        read(path)


def test_text_beside_such_numbers_is_refused_and_text_alone_is_set_aside(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("n;a;b;c\nx;12%;1,5;12.03.2024\ny;none yet;2,5;13.03.2024\n")
    with pytest.raises(ValueError, match=r"column 'a'.*'none yet'|line 3.*'none yet'"):
        read(path)
    o = read(path, missing="none yet")
    assert o.origin.aside.kinds == ("dates",)
    np.testing.assert_array_equal(dense(o), [[12, 1.5], [np.nan, 2.5]])


def test_a_plain_space_groups_digits_only_if_it_is_named(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("n;a;b;c\nx;1 234,5;1,5;2\ny;22 000;2,5;3\n")
    assert read(path).origin.aside.names == ("a",)
    np.testing.assert_array_equal(dense(read(path, thousands=" "))[:, 0], [1234.5, 22000])


def test_headers_and_row_names_of_numbers_with_commas(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("0,5;1,5;2,5\n3,5;4,5;5,5\n")
    np.testing.assert_array_equal(dense(read(path)), [[0.5, 1.5, 2.5], [3.5, 4.5, 5.5]])
    waves = [f"{400 + k},5" for k in range(8)]
    path.write_text("id;" + ";".join(waves) + "\n" + "".join(f"s{i};" + ";".join(["1,5"] * 8) + "\n" for i in range(3)))
    o = read(path)
    assert list(o.column_names) == waves and o.shape == (3, 8)


def test_a_hint_for_excel_is_no_line_of_the_table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("sep=;\na;b\n1,5;2\n3;4\n")
    assert dense(read(path)).tolist() == [[1.5, 2], [3, 4]]


def test_whole_numbers_that_floats_would_change_are_refused_in_groups_too(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a;b\n9.007.199.254.740.993;0,5\n1;0,5\n")
    with pytest.raises(ValueError, match=r"9,?007,?199,?254,?740,?993"):
        read(path)
    path.write_text("a;b\n9007199254740993;0,5\n1;0,5\n")
    with pytest.raises(ValueError, match=r"9,?007,?199,?254,?740,?993"):
        read(path)


def test_latin_bytes_far_behind_the_beginning(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"n,a,b\n" + b"x,1.5,2.5\n" * 200_000 + "für,3.5,4.5\n".encode("latin-1"))
    o = read(path, row_names=True)
    assert o.row_names[-1] == "für" and o.origin.encoding.codec == "cp1252"
    path.write_bytes("für,a,b\n".encode() + b"x,1.5,2.5\n" * 200_000 + "für,3.5,4.5\n".encode("latin-1"))
    with pytest.raises(ValueError, match="not text in UTF-8; name its encoding with --encoding"):
        read(path)
    assert read(path, encoding="latin-1", row_names=True).row_names[-1] == "für"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"decimal": ";"}, "decimal must be"),
        ({"thousands": "x"}, "thousands must be"),
        ({"decimal": ",", "thousands": ","}, "different signs"),
        ({"encoding": "klingon"}, "encoding 'klingon' is not known"),
        ({"encoding": "rot13"}, "encoding 'rot13' is not known"),
    ],
)
def test_wrong_options_are_refused(tmp_path, options, words):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=words):
        read(path, **options)


def test_triples_in_every_dialect(tmp_path):
    path, out = tmp_path / "t.csv", tmp_path / "out.csv"
    rng = np.random.default_rng(0)
    M = rng.standard_normal((8, 1)) @ rng.standard_normal((1, 6)) * 1000 + 0.5
    cells = [(i, j) for i in range(8) for j in range(6) if j < 3 or (i + j) % 2]
    text = "".join(f"ü{i};c{j};{digits(M[i, j], ',', '.')}\n" for i, j in cells)
    path.write_bytes(("row;column;value\n" + text).encode("cp1252"))
    o = read(path)
    assert o.row_names[0] == "ü0"
    at = np.array(cells).T
    np.testing.assert_array_equal(dense(o)[tuple(at)], M[tuple(at)])
    filled = co.complete(o)
    write(filled, out)
    again = read(out)
    np.testing.assert_array_equal(dense(again), filled.to_dense())
    assert again.origin.decimal == "," and again.origin.encoding.codec == "cp1252"
    path.write_text("row;column;value\n" + "".join(f"r{i};c{j};1,23{i}\n" for i in range(3) for j in range(3)))
    with pytest.raises(ValueError, match="no other cell decides"):
        read(path)
    assert dense(read(path, decimal=".")).max() == 1232


def test_codes_with_leading_zeros_are_kept_as_they_are(tmp_path):
    """A postcode is no number: as a row name or as a column that is set aside it keeps its first digit."""
    cells = [f"{31 * i % 7:.1f}" for i in range(12)]
    cells[4] = ""
    lines = [f"{37 * i % 5:05d},{1067 * i:05d},{3 * i % 5}.5,{cell}" for i, cell in enumerate(cells)]
    path = tmp_path / "codes.csv"
    path.write_text("\n".join(["group,zip,x,y", *lines]) + "\n")
    found = co.read(path)
    assert found.column_names.tolist() == ["x", "y"] and found.row_names is None
    write(co.complete(found), tmp_path / "filled.csv")
    filled = (tmp_path / "filled.csv").read_text().replace('"', "").splitlines()
    assert [line.split(",")[:2] for line in filled] == [line.split(",")[:2] for line in path.read_text().splitlines()]
    path.write_text("\n".join(["zip,x,y", *(line.split(",", 1)[1] for line in lines)]) + "\n")
    assert co.read(path).row_names.tolist() == [f"{1067 * i:05d}" for i in range(12)]


def test_a_first_column_of_amounts_is_not_read_as_row_names(tmp_path):
    path = tmp_path / "amounts.csv"
    path.write_text('x,y,z\n"$1,200",3,\n"$2,300.50",,5\n"($400)",1,2\n')
    assert dense(co.read(path))[:, 0].tolist() == [1200, 2300.5, -400]
    path.write_text("x,y,z\n1_000,3,\n,,5\n1_200,1,2\n")
    found = co.read(path)
    assert found.row_names is None and found.column_names.tolist() == ["y", "z"]
