"""Files at addresses such as ``s3://bucket/folder``: an address has the methods of a path that this package uses.

Every request is tried again a few times if the network fails; then one sentence says what failed. Credentials stand in
`Url.options` only: they are neither printed nor stored.
"""

from __future__ import annotations

import errno
import io
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from types import SimpleNamespace

from .printable import printable

OPTION = "--storage-option"  # The option of the command line.
REQUESTS = 16  # To a store at a time, for small files.
ATTEMPTS = 5  # Requests that are made before an error of the network is reported.
_FIRST_WAIT = 0.2  # Seconds before the second attempt; doubled for each further one, 3 s in all.
_TAIL = 1 << 16  # Bytes at the end of a file that are kept, because a Parquet footer is read several times.
_PART = 1 << 26  # Bytes of a part of a large upload or download; a request of this size takes seconds.
_SECONDS = {"connect_timeout": 10, "read_timeout": 60}  # Seconds that one request of S3 may take.
_PERMANENT = (FileNotFoundError, PermissionError, FileExistsError, IsADirectoryError, NotADirectoryError)
_EXTRAS = {"s3": "remote", "s3a": "remote", "http": "remote", "https": "remote", "gs": "gcs", "gcs": "gcs"}
_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]*)://(.*)", re.DOTALL)
_TOLD_APART = "is no key or value: write KEY=VALUE, such as endpoint_url=https://storage.example"


class StorageFailed(OSError):
    """A store did not do what it was asked for, several times."""


def is_url(path) -> bool:
    """Whether a path is the address of another store; a `Path` and ``file://`` are local."""
    if isinstance(path, Url):
        return True
    found = _ADDRESS.fullmatch(path) if isinstance(path, str) else None
    return found is not None and found[1] not in ("file", "local")


def as_path(path, options: dict | None = None):
    """A `Path`, or a `Url` with the options for its store."""
    if isinstance(path, Url):
        return path if options is None else Url(path.address, options).with_partition(path.partition)
    if is_url(path):
        return Url(path, options)
    if isinstance(path, Path):
        return path
    return Path(re.sub("^(file|local)://", "", path) if isinstance(path, str) else path)


def options_of(pairs) -> dict:
    """Options from texts KEY=VALUE; true, false, lists and objects are read as JSON, all else is text."""
    found = {}
    for pair in pairs:
        key, sign, value = pair.partition("=")
        if not key or not sign:
            raise ValueError(f"a storage option {_TOLD_APART}")  # The text may be a secret.
        found[key] = json.loads(value) if value in ("true", "false") or value[:1] in ("{", "[") else value
    return found


class Url:
    """The address of a file or folder in a store that fsspec reaches.

    Parameters
    ----------
    address : str
        Such as ``s3://bucket/folder``.
    options : dict, optional
        For the store, such as ``{"key": ..., "secret": ..., "endpoint_url": ...}``. Default: its environment variables
        and files of configuration.
    """

    def __init__(self, address: str, options: dict | None = None):
        scheme, _, rest = address.partition("://")
        self.scheme: str = scheme
        if scheme in _EXTRAS and not scheme.startswith("http") and "@" in rest.partition("/")[0]:
            raise ValueError(
                f"an address such as {scheme}://bucket/folder holds no key and no password: give them in the"
                f" environment or with {OPTION}"
            )
        self.options = dict(options or {})
        self._query = rest[rest.index("?") :] if self.scheme in ("http", "https") and "?" in rest else ""
        self._place = rest.removesuffix(self._query).rstrip("/") if self._query else rest.rstrip("/")
        self._kept: dict = {}
        self.partition = None

    @property
    def address(self) -> str:
        """The address as the store takes it."""
        return f"{self.scheme}://{self._place}{self._query}"

    def __str__(self) -> str:
        """The address without a password or a signature."""
        return f"{self.scheme}://{re.sub('^[^/@]*@', '', self._place)}"

    def __repr__(self) -> str:
        return f"Url({str(self)!r})"

    def __eq__(self, other) -> bool:
        return isinstance(other, Url) and self.address == other.address

    def __hash__(self) -> int:
        return hash(self.address)

    def __lt__(self, other) -> bool:
        return self.address < other.address

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_kept": {}}

    def __truediv__(self, name) -> Url:
        return Url(f"{self.scheme}://{self._place}/{name}{self._query}", self.options)

    def with_name(self, name: str) -> Url:
        return self.parent / name

    @property
    def name(self) -> str:
        return self._place.rpartition("/")[2]

    @property
    def suffix(self) -> str:
        return PurePosixPath(self.name).suffix

    @property
    def stem(self) -> str:
        return PurePosixPath(self.name).stem

    @property
    def parent(self) -> Url:
        return Url(f"{self.scheme}://{self._place.rpartition('/')[0]}", self.options)

    def with_partition(self, partition) -> Url:
        """The same address with what its folders say; of a file that is read with `hive`."""
        found = Url(self.address, self.options)
        found.partition, found._kept = partition, dict(self._kept)
        return found

    def absolute(self) -> Url:
        return self

    def is_symlink(self) -> bool:
        return False

    def _store(self):
        """The file system, and this file in it."""
        try:
            import fsspec

            options = dict(self.options)
            if self.scheme in ("s3", "s3a"):
                options["config_kwargs"] = {**_SECONDS, "retries": {"max_attempts": 1}} | options.get(
                    "config_kwargs", {}
                )
            store, place = fsspec.core.url_to_fs(self.address, **options)
        except ImportError as error:
            raise ModuleNotFoundError(_to_install(self.scheme), name=error.name) from None
        except ValueError as error:
            raise ValueError(f"{printable(self)}: {_without_secrets(error, self.options)}") from None
        if hasattr(store, "retries"):
            store.retries = 1  # `_attempted` tries again.
        return store, place

    def _attempted(self, what: str, request: Callable):
        """What ``request(store, place)`` returns; it is tried again if the network fails."""
        last: BaseException | None = None
        for attempt in range(ATTEMPTS):
            if attempt:
                time.sleep(_FIRST_WAIT * 2 ** (attempt - 1))
            try:
                return request(*self._store())
            except _PERMANENT as error:
                last = _cause_of(error)
                if isinstance(last, _PERMANENT):
                    raise self._refused(last, what) from None
            except (NotImplementedError, AttributeError) as error:
                words = f"{printable(self)} cannot be {what}: its store cannot do that"
                raise OSError(errno.ENOTSUP, words) from error
            except ModuleNotFoundError:
                raise
            except (TypeError, ValueError) as error:  # Options or names that the store does not take.
                words = _without_secrets(error, self.options)
                raise ValueError(f"{printable(self)} cannot be {what}: {words}") from None
            except Exception as error:
                last = _cause_of(error)
                if isinstance(last, PermissionError):
                    raise self._refused(last, what) from None
                if type(error).__name__ == "ParamValidationError":  # Of a name that S3 does not allow.
                    words = _without_secrets(error, self.options)
                    raise ValueError(f"{printable(self)} cannot be {what}: {words}") from None
                if type(error).__name__ in ("NoCredentialsError", "PartialCredentialsError", "NoCredentialProviders"):
                    break
        said = _without_secrets(last, self.options)
        if type(last).__name__.endswith(("CredentialsError", "CredentialProviders")):
            raise PermissionError(
                errno.EACCES,
                f"no credentials ({said}); give them with {OPTION}, or in the environment, also of workers",
                str(self),
            ) from None
        tried = f"after {ATTEMPTS} attempts"
        raise StorageFailed(
            f"{printable(self)} cannot be {what} {tried}: {said}; check the network and the store, then"
            " run the command again"
        ) from None

    def _refused(self, error: OSError, what: str) -> OSError:
        if isinstance(error, PermissionError):
            words = f"access is denied, so it cannot be {what}; check the credentials and their permissions"
            return PermissionError(errno.EACCES, words, str(self))
        if isinstance(error, FileNotFoundError):
            return FileNotFoundError(errno.ENOENT, "there is no such file, folder or bucket", str(self))
        return type(error)(error.errno or errno.EIO, _without_secrets(error, self.options), str(self))

    def facts(self) -> dict | None:
        """What the store says of a file or folder; None if there is none."""
        try:
            return self._attempted("looked up", lambda store, place: (store.invalidate_cache(), store.info(place))[1])
        except FileNotFoundError:
            return None

    def exists(self) -> bool:
        return self.facts() is not None

    def is_file(self) -> bool:
        found = self.facts()
        return found is not None and found["type"] == "file"

    def is_dir(self) -> bool:
        found = self.facts()
        return found is not None and found["type"] == "directory"

    def stat(self):
        """An object with the attribute `st_size`, in bytes."""
        if "size" not in self._kept:
            found = self.facts()
            if found is None or found["type"] != "file":
                raise self._refused(FileNotFoundError(), "read")
            self._kept["size"] = found["size"]
        if self._kept["size"] is None:
            self._kept["size"] = len(self.read_bytes())
        return SimpleNamespace(st_size=self._kept["size"])

    def mkdir(self, **_) -> None:
        """Nothing: folders of a store are parts of names."""

    def _listed(self, deep: bool) -> list[Url]:
        def request(store, place):
            store.invalidate_cache()
            begin = place.rstrip("/") + "/"
            found = store.find(place, detail=True).values() if deep else store.ls(place, detail=True)
            inside = [one for one in found if one["name"].startswith(begin)]
            return {one["name"].removeprefix(begin).rstrip("/"): one for one in inside}

        try:
            found = self._attempted("listed", request)
        except FileNotFoundError:
            return []
        return sorted((self / name)._with_size_of(facts) for name, facts in found.items() if name)

    def _with_size_of(self, facts: dict) -> Url:
        if facts.get("type") == "file" and facts.get("size") is not None:
            self._kept["size"] = facts["size"]
        return self

    def iterdir(self) -> list[Url]:
        return self._listed(deep=False)

    def rglob(self, pattern: str) -> list[Url]:
        return [one for one in self._listed(deep=True) if fnmatchcase(one.name, pattern)]

    def glob(self, pattern: str) -> list[Url]:
        """Files of this folder itself."""
        return [one for one in self._listed(deep=False) if fnmatchcase(one.name, pattern)]

    def matches(self) -> list[Url]:
        """What ``*``, ``?`` and ``[...]`` in the address stand for; a file or folder of just this name goes first."""
        if not re.search(r"[*?\[]", self._place) or self.exists():
            return [self]

        def request(store, place):
            store.invalidate_cache()
            return [store.unstrip_protocol(one) for one in store.glob(place)]

        return sorted(Url(one, self.options) for one in self._attempted("listed", request))

    def facts_below(self) -> list[tuple[str, dict]]:
        """The names of all files below, and what the store says of each."""

        def request(store, place):
            store.invalidate_cache()
            return sorted(store.find(place, detail=True).items())

        return self._attempted("listed", request)

    def relative_to(self, folder: Url) -> PurePosixPath:
        return PurePosixPath(self._place).relative_to(folder._place)

    def read_bytes(self, start: int | None = None, stop: int | None = None) -> bytes:
        """The content, or the bytes from `start` to the one before `stop`."""

        def request(store, place):
            content = store.cat_file(place, start=start, end=stop)
            wanted = None if stop is None else stop - (start or 0)
            if stop is not None and wanted is not None and len(content) > wanted and len(content) >= stop:
                content = content[start:stop]  # Some servers send all of a file.
            if wanted is not None and len(content) != wanted:
                raise StorageFailed(f"{len(content):,} bytes came where {wanted:,} were asked for")
            return content

        return self._attempted("read", request)

    def read_text(self, encoding: str = "utf-8") -> str:
        return self.read_bytes().decode(encoding)

    def write_bytes(self, content) -> None:
        """Write all of it in one step: until then readers see the old file, or none."""
        self._kept = {}
        self._attempted("written", lambda store, place: store.pipe_file(place, bytes(content)))

    def upload(self, path) -> None:
        """Write the content of a local file, in one step too."""
        self._kept = {}
        self._attempted("written", lambda store, place: store.put_file(str(path), place))

    def download(self, path) -> None:
        """Copy it to a local file."""
        size = self.stat().st_size
        with open(path, "wb") as file:
            for lo in range(0, size, _PART):
                file.write(self.read_bytes(lo, min(lo + _PART, size)))

    def unlink(self, missing_ok: bool = False) -> None:
        try:
            self._attempted("removed", lambda store, place: store.rm_file(place))
        except FileNotFoundError:
            if not missing_ok:
                raise

    def remove_tree(self) -> None:
        """Remove everything below."""

        def request(store, place):
            store.invalidate_cache()
            if store.exists(place):
                store.rm(place, recursive=True)

        self._attempted("removed", request)

    def tail(self) -> tuple[int, bytes]:
        """Where the last bytes of the file begin, and these bytes, which are kept."""
        if "tail" not in self._kept:
            size = self.stat().st_size
            start = max(0, size - _TAIL)
            self._kept["tail"] = start, self.read_bytes(start, size) if size else b""
        return self._kept["tail"]


class RangeFile(io.RawIOBase):
    """A file in a store that is read from any place, by one request for each piece."""

    def __init__(self, url: Url):
        self._url, self._at = url, 0
        self._size = url.stat().st_size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset + (0, self._at, self._size)[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def size(self) -> int:
        return self._size

    def read(self, size: int = -1) -> bytes:
        stop = self._size if size is None or size < 0 else min(self._at + size, self._size)
        if stop <= self._at:
            return b""
        lo, self._at = self._at, stop
        if lo < self._size - _TAIL:
            return self._url.read_bytes(lo, stop)
        begun, kept = self._url.tail()
        return kept[lo - begun : stop - begun]

    def readinto(self, buffer) -> int:
        content = self.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)


def _to_install(scheme: str) -> str:
    """The sentence about a library that is missing."""
    extra = _EXTRAS.get(scheme, "remote")
    words = f"addresses such as {scheme}:// need another library: pip install 'colonnade[{extra}]'"
    return words if scheme in _EXTRAS else f"{words}, and the library that fsspec names for {scheme}://"


def _cause_of(error: Exception) -> Exception:
    """What a request failed of: fsspec calls every failure of a web server a file that is not there."""
    cause = error.__cause__ if isinstance(error, FileNotFoundError) else error
    status = getattr(cause, "status", None)
    if status in (401, 403):
        return PermissionError(errno.EACCES, "access is denied")
    is_of_the_network = isinstance(cause, (ConnectionError, TimeoutError)) or (
        type(cause).__module__.startswith("aiohttp") and status not in (404, 410)
    )
    return cause if is_of_the_network and isinstance(cause, Exception) else error


def _without_secrets(error: BaseException | None, options: dict) -> str:
    """The words of a library in one line; values of options do not stand in them."""
    text = " ".join(str(error).split()) or type(error).__name__
    for secret in sorted(_texts_in(options), key=len, reverse=True):
        text = text.replace(secret, "***")
    text = printable(_free_of_secrets(text))
    return text if len(text) <= 200 else text[:197] + "..."


def _free_of_secrets(text: str) -> str:
    """A text whose addresses have no password and, on the web, no signature behind the question mark."""
    return re.sub(r"(https?://[^\s?]*)\?[^\s'\")]*", r"\1", re.sub(r"(?<=://)[^/@\s]+@", "", text))


def _texts_in(options) -> Iterator[str]:
    for value in options.values() if isinstance(options, dict) else options:
        if isinstance(value, (dict, list, tuple)):
            yield from _texts_in(value)
        elif isinstance(value, str) and len(value) >= 4 and not is_url(value):
            yield value


def without_secrets(words: list[str]) -> list[str]:
    """The words of a command line, without the values of storage options and without passwords in addresses."""
    kept, hide = [], False
    for word in words:
        name, sign, value = word.partition("=")
        if hide or (name == OPTION and sign):
            begin, pair = (f"{OPTION}=", value) if not hide else ("", word)
            word = f"{begin}{pair.partition('=')[0]}=..."
            hide = False
        elif word == OPTION:
            hide = True
        elif is_url(word):
            word = _free_of_secrets(word)
        kept.append(word)
    return kept


def read_range(path, start: int, size: int) -> bytes:
    """Some bytes of a file."""
    if isinstance(path, Url):
        return path.read_bytes(start, start + size)
    with open(path, "rb") as file:
        file.seek(start)
        return file.read(size)


def read_ends(paths) -> None:
    """Ask a store for the ends of several files at a time; footers are there."""
    with ThreadPoolExecutor(REQUESTS) as pool:
        list(pool.map(Url.tail, [path for path in paths if isinstance(path, Url)]))


def remove_tree(folder) -> None:
    """Remove a folder with all that is in it, if it is there."""
    if isinstance(folder, Url):
        folder.remove_tree()
    else:
        shutil.rmtree(folder, ignore_errors=True)


def opened_file(path):
    """A file to read from, local or not."""
    return io.BufferedReader(RangeFile(path)) if isinstance(path, Url) else open(os.fspath(path), "rb")
