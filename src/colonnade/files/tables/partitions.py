"""Folders such as ``year=2020`` as columns of the Parquet files in them, where the user asks for it.

Arrow reads the names of the folders, and finds the types of the columns: whole numbers if all values are, else text.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..._support.arguments import printable, shown
from ..._support.storage import Url
from .kinds import needed_module, one_line


@dataclass(frozen=True)
class Partition:
    """What the folders of a file say.

    Attributes
    ----------
    values : dict
        Whole number, text or None by the name of the column.
    are_text : frozenset of str
        The columns with text.
    """

    values: dict[str, int | str | None]
    are_text: frozenset[str]


class LocalPart(type(Path())):  # type: ignore[misc]
    """The path of a file with the values of its folders."""

    partition: Partition | None = None

    def __reduce__(self):
        return _local_part, (str(self), self.partition)

    def absolute(self) -> LocalPart:
        return _local_part(super().absolute(), self.partition)


def _local_part(path, partition: Partition | None) -> LocalPart:
    found = LocalPart(path)
    found.partition = partition
    return found


def with_partitions(paths: list) -> list:
    """The same files, each with the values of its folders."""
    pyarrow = needed_module("pyarrow", "cli")
    from pyarrow import dataset, fs

    names = [_as_arrow_takes_it(path) for path in paths]
    options = dataset.FileSystemFactoryOptions(partitioning=dataset.HivePartitioning.discover(infer_dictionary=False))
    kinds = (fs.LocalFileSystem(), names, dataset.ParquetFileFormat(), options)
    try:
        schema = dataset.FileSystemDatasetFactory(*kinds).inspect(fragments=0)  # It opens no file.
    except pyarrow.ArrowException as error:
        raise ValueError(
            f"the folders of {printable(paths[0])} cannot be read as columns: {one_line(error)}; leave out --hive"
            " (hive=True)"
        ) from error
    if not schema.names:
        raise ValueError(f"no folder of {printable(paths[0])} is named KEY=VALUE; leave out --hive (hive=True)")
    names_to_values = dataset.partitioning(schema, flavor="hive")
    are_text = frozenset(field.name for field in schema if str(field.type) == "string")
    found = [dataset.get_partition_keys(names_to_values.parse(name)) for name in names]
    return [_part(path, Partition(values, are_text)) for path, values in zip(paths, found)]


def _as_arrow_takes_it(path) -> str:
    name = str(path).replace("://", "/")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{printable(path)} has a name that is not text in UTF-8") from None
    return name


def _part(path, partition: Partition):
    return path.with_partition(partition) if isinstance(path, Url) else _local_part(path, partition)


def partition_of(path) -> Partition | None:
    """What the folders of a file say; None unless the user asked for it."""
    return getattr(path, "partition", None)


class PartitionedFile:
    """A Parquet file of pyarrow with columns for the values of its folders."""

    def __init__(self, file, path, partition: Partition):
        twice = next((name for name in partition.values if name in file.schema_arrow.names), None)
        if twice is not None:
            raise ValueError(
                f"{printable(path)} has a column {shown(twice)}, and so has one of its folders; leave out --hive"
                " (hive=True)"
            )
        self._file, self._partition = file, partition

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> PartitionedFile:
        return self

    def __exit__(self, *_) -> None:
        self._file.close()

    @property
    def schema_arrow(self):
        """The types of all columns, those of the folders last."""
        schema = self._file.schema_arrow
        for name in self._partition.values:
            schema = schema.append(self._column(name, 0)[0])
        return schema

    def iter_batches(self, *arguments, columns, **options):
        """Record batches of some columns."""
        import pyarrow

        for batch in self._file.iter_batches(*arguments, columns=self._own(columns), **options):
            arrays, names = self._joined(batch, columns, batch.num_rows)
            yield pyarrow.record_batch(arrays, names=names)

    def read(self, columns):
        """A table of some columns."""
        import pyarrow

        table = self._file.read(columns=self._own(columns))
        arrays, names = self._joined(table, columns, table.num_rows)
        return pyarrow.table(arrays, names=names)

    def _own(self, columns) -> list[str]:
        return [name for name in columns if name not in self._partition.values]

    def _joined(self, read, columns, size: int) -> tuple[list, list[str]]:
        values = self._partition.values
        return [self._column(name, size)[1] if name in values else read.column(name) for name in columns], list(columns)

    def _column(self, name: str, size: int) -> tuple:
        """The field, and an array with as many equal values."""
        import pyarrow

        value, is_text = self._partition.values[name], name in self._partition.are_text
        kind = pyarrow.string() if is_text else pyarrow.int32()
        array = pyarrow.repeat(pyarrow.scalar(value, kind), size)
        array = array.dictionary_encode() if is_text else array
        return pyarrow.field(name, array.type), array
