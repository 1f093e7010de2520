"""Files that must be refused, and the words of the refusal."""

import io
import pickle
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


def npy_with_header(header: str, body: bytes = b"") -> bytes:
    text = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + body


HUGE = "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000, 1250000), }"


def bad_files():
    plain, objects = io.BytesIO(), io.BytesIO()
    np.save(plain, np.ones((20, 30)))
    np.save(objects, np.array([["a", 1], [2, 3]], object), allow_pickle=True)
    parquet = io.BytesIO()
    pq.write_table(pa.table({"a": np.arange(1000.0), "b": np.arange(1000.0)}), parquet)
    npz = io.BytesIO()
    np.savez(npz, X=np.ones((20, 30)))
    yield "cut.npy", plain.getvalue()[:-8], "declares float64 of shape"
    yield "more.npy", plain.getvalue() + b"x", "is damaged"
    yield "head.npy", plain.getvalue()[:20], "damaged or not an npy"
    yield "magic.npy", b"\x00" + plain.getvalue(), "another kind of file or damaged: copy or download it again"
    yield "renamed.npy", npz.getvalue(), "begins like npz: rename it"
    yield "table.csv", npz.getvalue(), "begins like npz: rename it"
    yield "objects.npy", objects.getvalue(), "pickled Python objects"
    yield "huge.npy", npy_with_header(HUGE, b"x" * 100), r"10\.0 TB, and holds 100 bytes"
    yield "negative.npy", npy_with_header(HUGE.replace("(1000000,", "(-1000000,")), "damaged"
    yield "code.npy", npy_with_header("__import__('os').system('true')"), "damaged"
    yield "cut.npz", npz.getvalue()[:-30], "damaged or not an npz"
    flipped = bytearray(npz.getvalue())
    flipped[500] ^= 1
    yield "flipped.npz", bytes(flipped), "damaged or not an npz"
    yield "objects.npz", zipped("X.npy", objects.getvalue()), "pickled Python objects"
    yield "pickle.npz", zipped("X.npy", pickle.dumps([1, 2])), "not an npy array"
    yield "huge.npz", zipped("X.npy", npy_with_header(HUGE, b"x" * 100)), r"10\.0 TB"
    yield "none.npz", zipped("readme.txt", b"hello"), "no array"
    yield "cut.parquet", parquet.getvalue()[:-20], "damaged or not Parquet"
    yield "body.parquet", parquet.getvalue()[:4] + b"\xff" * 900 + parquet.getvalue()[904:], "damaged"
    yield "text.parquet", b"a,b\n1,2\n", "another kind of file or damaged: copy or download it again"
    yield "packed.csv", b"\x1f\x8b\x08" + b"0" * 50, "decompress it first"
    yield "broken.csv", "naïve,b\n".encode() + b"\xff,2\n1,2\n", "not text in UTF-8; name its encoding with --encoding"
    yield "control.csv", b"a,b\x81\n1,2\n", "not text in UTF-8; name its encoding with --encoding"
    yield "binary.csv", b"a,b\n1,\x00\n", "no text"
    yield "unknown.bin", b"\x00\x01\x02", "no kind that can be read"
    yield "sheet.h5", b"\x89HDF\r\n", "HDF5"


def zipped(name, content):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return file.getvalue()
