"""What kind of file a path is, by its first bytes and its ending, and what is too large or of another kind."""

from __future__ import annotations

import json
import os
import re
import struct
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._support.arguments import printable, shown
from ..._support.atomic_writing import in_bytes
from ..._support.numbers import BLOCK_CELLS
from ..._support.storage import Url, opened_file
from ...data.set_aside import SetAside
from ...data.xarrays import ArrayForm

if TYPE_CHECKING:
    from .encodings import Encoding

SUFFIXES = {
    ".npy": "npy",
    ".npz": "npz",
    ".csv": "csv",
    ".tsv": "csv",
    ".tab": "csv",
    ".txt": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".zarr": "zarr",
    ".xlsx": "xlsx",
    ".nc": "netcdf",
    ".nc4": "netcdf",
    ".cdf": "netcdf",
}
_ARCHIVE = b"PK\x03\x04"
_MAGIC = {
    b"\x93NUMPY": "npy",
    _ARCHIVE: "npz",
    b"PAR1": "parquet",
    **dict.fromkeys((b"CDF\x01", b"CDF\x02", b"CDF\x05"), "netcdf"),
}
_FOREIGN = {
    *(".xls", ".xlsm", ".ods", ".json", ".jsonl", ".ndjson", ".xml", ".html", ".pdf"),
    *(".mat", ".sav", ".dta", ".sas7bdat", ".rds", ".rdata", ".pkl", ".pickle"),
}
HDF5 = b"\x89HDF"  # First bytes of HDF5 files, and so of netCDF 4.
_OTHERS = {
    b"\x1f\x8b": "it is compressed with gzip: decompress it first",
    b"\x28\xb5\x2f\xfd": "it is compressed with zstd: decompress it first",
    b"\xfd7zXZ": "it is compressed with xz: decompress it first",
    b"BZh": "it is compressed with bzip2: decompress it first",
    HDF5: "it is HDF5: save the matrix as npy, Zarr or Parquet; if it is netCDF, let its name end in .nc",
    b"\xd0\xcf\x11\xe0": "it is an old or encrypted Excel file: save it as xlsx without a password",
    b"ARROW1": "it is an Arrow file: save it as Parquet",
}
_MARKS_OF_TEXT = b"\xff\xfe", b"\xfe\xff"  # The marks of UTF-16 and UTF-32.
TIMES_ARRAY, TIMES_TABLE = 4.0, 8.0  # How often 8 bytes a cell are in memory at the peak of `complete`, measured.
TIMES_TEXT = 3.0  # How often names are in memory while they are read, measured.
AS_TRIPLES = "If its lines are triples, name their columns with --row, --column and --value (row=..., and so on)"
ANEW = "copy or download it again, or save it again where it was made"
_AS_TRIPLES = "complete it by blocks, from a file of triples"
_KNOWN = "npy, npz, csv, tsv, Parquet, Zarr, xlsx and netCDF"


@dataclass(frozen=True, eq=False)
class FileForm:
    """What a file is besides its numbers, so that a filled one can be written like it.

    Attributes
    ----------
    kind : {"npy", "npz", "csv", "parquet", "zarr", "xlsx", "netcdf"}
    fields : (str, str, str) or None
        The names of row, column and value if the file holds triples.
    whole_labels : (bool, bool)
        Whether the rows and the columns of triples are whole numbers.
    key : str or None
        Which array of an npz file or a Zarr group, which sheet of a workbook, or which variable of a netCDF file.
    name_keys : (str or None, str or None)
        Under which keys an npz file has the names of rows and columns.
    sparse : bool
        Whether an npz file is a sparse matrix of scipy.
    delimiter : str
    header : bool
        Whether a text table has a line of column names.
    corner : str or None
        What stands above the row names of a text table; None if nothing, not even a delimiter.
    index : pyarrow Table or None
        The columns of a Parquet file or a sheet that are row names, with dictionaries in place of text.
    index_types : sequence of Arrow types
        What they are in the file.
    metadata : dict or None
        Of a Parquet file.
    transposed : bool
        Whether rows of the file are columns of the matrix.
    aside : SetAside or None
        The columns of a csv, Parquet or xlsx file that are no part of the matrix, as an Arrow table.
    whole : dict
        The Arrow types of its columns of whole numbers, by their positions among the columns of numbers.
    decimal : {".", ","}
        The decimal sign of a text table.
    units : dict
        What stands before and behind the numbers of its columns, two texts by their positions as of `whole`.
    encoding : Encoding or None
        Of a text table; None is UTF-8.
    formats : dict
        The number formats of the columns of a sheet, by their positions; row names have -1.
    array : ArrayForm or None
        Dimensions and coordinates of the variable of a netCDF file.
    attributes : dict
        Those of a netCDF file as a whole.
    line_of : function, optional
        Says on which line of the file a row of its table stands, counted from 1; None if that cannot be said.
    """

    kind: str
    fields: tuple[str, str, str] | None = None
    whole_labels: tuple[bool, bool] = (False, False)
    key: str | None = None
    name_keys: tuple[str | None, str | None] = (None, None)
    sparse: bool = False
    delimiter: str = ","
    header: bool = True
    corner: str | None = ""
    index: Any = None
    index_types: tuple = ()
    metadata: dict | None = None
    transposed: bool = False
    aside: SetAside | None = None
    whole: dict = field(default_factory=dict)
    decimal: str = "."
    units: dict = field(default_factory=dict)
    encoding: Encoding | None = None
    formats: dict = field(default_factory=dict)
    array: ArrayForm | None = None
    attributes: dict = field(default_factory=dict)
    line_of: Callable[[int], int | None] | None = None

    def dialect_in_words(self) -> str:
        """How a file is written: a text table other than plain csv in UTF-8, or the dimensions of netCDF."""
        if self.array is not None:
            return f"variable {shown(self.key)}, {self.array.in_words()}"
        if self.kind != "csv":
            return ""
        signs = {",": "", ";": "semicolons", "\t": "tabs"}
        words = [
            signs.get(self.delimiter, f"delimiter {self.delimiter!r}"),
            "decimal comma" if self.decimal == "," else "",
        ]
        words.append("" if self.encoding is None or self.encoding.is_utf8 else self.encoding.in_words())
        return ", ".join(word for word in words if word)

    def oriented(self, pair) -> tuple[Any, Any]:
        """What belongs to rows and columns of the matrix, as it belongs to rows and columns of the file; and back."""
        rows, columns = pair
        return (columns, rows) if self.transposed else (rows, columns)


def kind_of(path: Path | Url) -> str:
    """npy, npz, csv, parquet, zarr, xlsx or netcdf; a file whose content contradicts its name is refused."""
    if isinstance(path, Url) and SUFFIXES.get(path.suffix.lower()) == "parquet":
        return "parquet"  # Its footer tells, which has to be read anyway.
    if path.is_dir():
        if is_zarr(path):
            return "zarr"
        raise ValueError(f"{printable(path)} is a folder and not a Zarr array")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {printable(path)}")
    if not path.is_file():
        raise ValueError(f"{printable(path)} is not an ordinary file")
    with opened_file(path) as file:
        head = file.read(4096)
    if not head:
        raise ValueError(f"{printable(path)} is empty")
    if path.suffix.lower() in _FOREIGN:
        raise ValueError(f"{printable(path)} is of a kind that is not read; save it as csv or Parquet")
    said = SUFFIXES.get(path.suffix.lower())
    found = next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)
    if found == "npz":
        found = _kind_of_archive(path) or (None if said == "xlsx" else "npz")
    if said == "netcdf" and head.startswith(HDF5):
        found = "netcdf"
    if found is None:
        for magic, remedy in _OTHERS.items():
            if head.startswith(magic):
                raise ValueError(f"{printable(path)} cannot be read: {remedy}")
    if said is None:
        if found is None and b"\0" in head and not head.startswith(_MARKS_OF_TEXT):
            raise ValueError(f"{printable(path)} is of no kind that can be read; those are {_KNOWN}")
        return found or "csv"
    if found is None and head.startswith(_ARCHIVE):
        raise ValueError(f"{printable(path)} is damaged or incomplete: {ANEW}")
    if (said if said != "csv" else None) != found:
        looks = f"it begins like {found}: rename it" if found else f"it is another kind of file or damaged: {ANEW}"
        raise ValueError(f"{printable(path)} is not {said}, as its name says; {looks}")
    return said


def _kind_of_archive(path: Path | Url) -> str | None:
    """Whether an archive is a workbook of Excel or one of arrays; None if it cannot be opened."""
    try:
        with opened_file(path) as file, zipfile.ZipFile(file) as archive:
            return "xlsx" if "xl/workbook.xml" in archive.NameToInfo else "npz"
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, struct.error):
        return None


def kind_of_name(path: Path) -> str:
    """The kind that a file to be written shall have."""
    kind = SUFFIXES.get(path.suffix.lower())
    if kind is None:
        raise ValueError(f"{printable(path)} has no ending that says its kind; those are {', '.join(SUFFIXES)}")
    return kind


_ZARR_FILES = {"zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata"}
_ZARR_CHUNK = re.compile(r"(c[/.])?[0-9]+([/.][0-9]+)*")


def is_zarr(path: Path | Url) -> bool:
    return any((path / name).is_file() for name in ("zarr.json", ".zarray", ".zgroup"))


def holds_one_zarr(path: Path) -> bool:
    """Whether a folder holds a single Zarr array, perhaps in groups, and nothing else."""
    if not is_zarr(path):
        return False
    files = [found for found in path.rglob("*") if not found.is_dir()]
    arrays = {found.parent for found in files if found.name == ".zarray" or _describes_array(found)}
    chunks = [found for found in files if found.name not in _ZARR_FILES]
    if len(arrays) != 1:
        return False
    (place,) = arrays
    return all(
        place in found.parents and _ZARR_CHUNK.fullmatch(found.relative_to(place).as_posix()) for found in chunks
    )


def _describes_array(path: Path) -> bool:
    try:
        return path.name == "zarr.json" and json.loads(path.read_text("utf-8")).get("node_type") == "array"
    except (OSError, ValueError, AttributeError):
        return False


def files_in(folder: Path | Url) -> list:
    """The tables in a folder, by name; hidden ones and those that begin with _ are not data."""
    if (folder / "facts.json").is_file():
        raise ValueError(f"{printable(folder)} is a result of colonnade, not data: open it with Completion.load")
    inside: list = sorted(folder.rglob("*"))
    found = [
        path
        for path in inside
        if SUFFIXES.get(path.suffix.lower()) in ("csv", "parquet")
        and (isinstance(path, Url) or path.is_file())
        and not any(part.startswith((".", "_")) for part in path.relative_to(folder).parts)
    ]
    if not found:
        raise ValueError(f"the folder {printable(folder)} holds no csv or Parquet file and is no Zarr array")
    return found


def memory_size() -> float:
    """Bytes of memory that this machine or container has; infinity if it does not tell."""
    sizes = [float("inf")]
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        sizes.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):
            sizes.append(float(Path(limit).read_text()))
    return min(sizes)


def refuse_beyond_memory(
    path, declared: float, what: str = "", *, times: float = 1.0, limit: float | None = None, remedy: str = _AS_TRIPLES
) -> None:
    """Refuse what would not fit, before anything is allocated.

    Parameters
    ----------
    path, what
        The file and the part of it that is meant.
    declared : float
        Bytes that it unpacks to.
    times : float
        How often they are in memory at once.
    limit : float, optional
        Bytes that may be used. Default: the memory of this machine.
    remedy : str
    """
    most, needed = memory_size() if limit is None else min(limit, memory_size()), times * declared
    if needed > most:
        needs = "" if times == 1 else f" and needs about {in_bytes(needed)}"
        machine = f"this machine has {in_bytes(most)} of memory"
        there = machine if limit is None or most < limit else f"the memory limit leaves {in_bytes(limit)} for it"
        more = "" if limit is None else "raise --memory-limit (memory_limit=...), or "
        raise MemoryError(f"{printable(path)}{what} declares {in_bytes(declared)}{needs}, and {there}: {more}{remedy}")


def refuse_one_column(path: Path, names, aside: SetAside) -> None:
    """Refuse a file with text beside a single column of numbers: nothing can be learned from it, or it is triples."""
    if len(names) == 1:
        raise ValueError(
            f"{printable(path)} has one column of numbers, {shown(names[0])}, beside {aside.in_words()}; a table needs"
            f" at least two. {AS_TRIPLES}"
        )


def blocks_of(completion, step: int | None = None):
    """The filled columns, some at a time: the first of them, and an array of shape (m, k)."""
    m, n = completion.shape
    step = step or max(1, BLOCK_CELLS // m)
    for lo in range(0, n, step):
        yield lo, completion.columns(np.arange(lo, min(lo + step, n)))


def safe_key(path: Path, key: str) -> str:
    """A key under which the result can be written: it must not lead out of the folder where somebody unpacks it."""
    parts = key.replace("\\", "/").split("/")
    if ".." in parts or not parts[0] or ":" in parts[0] or not key.isprintable():
        raise ValueError(
            f"the array {key!r:.60} of {printable(path)} has a name that is not safe to write again; save it under a"
            " plain name such as 'X'"
        )
    return key


def one_line(error: BaseException) -> str:
    """What a library says, for the end of a sentence."""
    text = printable(" ".join(str(error).split()))
    return text if len(text) <= 200 else text[:197] + "..."


def needed_module(name: str, extra: str):
    """A library of an extra, or a message which extra that is."""
    if name == "pyarrow":  # pyarrow imports pandas later, where an interrupt would be swallowed.
        with suppress(ImportError):
            import_module("pandas")
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != name.partition(".")[0]:
            raise
        raise ModuleNotFoundError(
            f"this kind of file needs {name}: pip install 'colonnade[{extra}]'", name=name
        ) from None
