"""libtuck.so: found, loaded and checked; every call becomes a result or an Error.

Only handles, integers, strings and buffers cross: no layout of a struct is known here.
"""

from __future__ import annotations

import ctypes
import os
from ctypes import (
    CFUNCTYPE,
    POINTER,
    c_bool,
    c_char_p,
    c_double,
    c_int,
    c_int64,
    c_size_t,
    c_uint32,
    c_uint64,
    c_void_p,
)
from pathlib import Path
from typing import Any, Callable, Iterator, Optional

from ._version import VERSION

STATUS = {
    -1: "ENOMEM",
    -2: "EINVAL",
    -3: "ESYNTAX",
    -4: "EIO",
    -5: "ELINT",
    -6: "EEXEC",
}


class Error(RuntimeError):
    """A call of the library failed. `status` is its name (EINVAL, ESYNTAX, ...), `diagnostics` what
    the library said, as text."""

    def __init__(self, message: str, status: str = "", diagnostics: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.diagnostics = diagnostics


def _candidates() -> Iterator[str]:
    given = os.environ.get("TUCK_LIBRARY")
    if given:
        yield given
        return
    here = Path(__file__).resolve().parent
    beside = here / "libtuck.so"  # in a wheel
    if beside.exists():
        yield str(beside)
        return
    built = here.parent.parent / "build" / "release" / "libtuck.so"  # in the source tree
    if built.exists():
        yield str(built)
        return
    major, minor, _ = VERSION.split(".")
    yield f"libtuck.so.{major}" if major != "0" else f"libtuck.so.{major}.{minor}"
    yield "libtuck.so"


def _load() -> ctypes.CDLL:
    said = []
    for path in _candidates():
        try:
            library = ctypes.CDLL(path)
        except OSError as error:
            said.append(str(error))
            continue
        library.tuck_version.restype = c_char_p
        found = library.tuck_version().decode()
        if found != VERSION:
            raise ImportError(
                f"tuck {VERSION} found libtuck {found} in {path}: both must be of one version"
            )
        return library
    raise ImportError(
        "libtuck.so was not found: set TUCK_LIBRARY to its path, or build it with make ("
        + "; ".join(said)
        + ")"
    )


lib = _load()

WRITE_FN = CFUNCTYPE(c_bool, c_void_p, c_void_p, c_size_t)
HANDLE = POINTER(c_void_p)

# name: (result, arguments). "status" is an int that call() checks.
_FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "tuck_version_number": (c_uint32, []),
    "tuck_status_text": (c_char_p, [c_int]),
    "tuck_diags_new": (c_void_p, [c_void_p]),
    "tuck_diags_free": (None, [c_void_p]),
    "tuck_diags_count": (c_size_t, [c_void_p]),
    "tuck_diags_errors": (c_size_t, [c_void_p]),
    "tuck_diags_print": (c_int, [c_void_p, c_int, WRITE_FN, c_void_p]),
    "tuck_settings_new": (c_int, [c_void_p, HANDLE]),
    "tuck_settings_free": (None, [c_void_p]),
    "tuck_settings_set": (c_int, [c_void_p, c_char_p, c_char_p, c_void_p]),
    "tuck_settings_machine": (c_void_p, [c_void_p]),
    "tuck_settings_run": (c_void_p, [c_void_p]),
    "tuck_settings_print": (c_void_p, [c_void_p]),
    "tuck_settings_explain": (c_void_p, [c_void_p]),
    "tuck_doc_read_text": (
        c_int,
        [c_char_p, c_size_t, c_char_p, c_void_p, c_void_p, HANDLE],
    ),
    "tuck_doc_free": (None, [c_void_p]),
    "tuck_doc_count": (c_size_t, [c_void_p]),
    "tuck_doc_graph": (c_void_p, [c_void_p, c_size_t]),
    "tuck_graph_copy": (c_int, [c_void_p, HANDLE]),
    "tuck_graph_free": (None, [c_void_p]),
    "tuck_graph_size": (c_size_t, [c_void_p]),
    "tuck_graph_print": (c_int, [c_void_p, c_int, c_void_p, WRITE_FN, c_void_p]),
    "tuck_graph_lint": (c_int, [c_void_p, c_void_p]),
    "tuck_graph_infer": (c_int, [c_void_p, c_int, c_void_p]),
    "tuck_graph_read_sidecar": (c_int, [c_void_p, c_char_p, c_int64, c_void_p]),
    "tuck_graph_set_group": (
        c_int,
        [c_void_p, c_char_p, c_int64, c_void_p, c_void_p],
    ),
    "tuck_graph_set_rank": (c_int, [c_void_p, c_int64, c_void_p]),
    "tuck_graph_set_symbol": (c_int, [c_void_p, c_char_p, c_int64]),
    "tuck_graph_remember": (c_int, [c_void_p]),
    "tuck_graph_group_count": (c_size_t, [c_void_p]),
    "tuck_graph_group_name": (c_char_p, [c_void_p, c_size_t]),
    "tuck_graph_group_size": (c_int64, [c_void_p, c_size_t]),
    "tuck_graph_simulate": (c_int, [c_void_p, c_void_p, c_void_p, HANDLE]),
    "tuck_simulation_free": (None, [c_void_p]),
    "tuck_simulation_print": (c_int, [c_void_p, c_void_p, WRITE_FN, c_void_p]),
    "tuck_simulation_html": (
        c_int,
        [c_void_p, c_void_p, c_char_p, WRITE_FN, c_void_p],
    ),
    "tuck_graph_explain": (c_int, [c_void_p, c_void_p, c_void_p, c_void_p, HANDLE]),
    "tuck_explanation_free": (None, [c_void_p]),
    "tuck_explanation_print": (c_int, [c_void_p, c_void_p, WRITE_FN, c_void_p]),
    "tuck_pass_count": (c_size_t, []),
    "tuck_pass_name": (c_char_p, [c_size_t]),
    "tuck_pass_help": (c_char_p, [c_size_t]),
    "tuck_pipeline_parse": (
        c_int,
        [c_char_p, c_size_t, c_char_p, c_void_p, c_void_p, HANDLE],
    ),
    "tuck_pipeline_free": (None, [c_void_p]),
    "tuck_pipeline_count": (c_size_t, [c_void_p]),
    "tuck_pipeline_is_timed": (c_bool, [c_void_p]),
    "tuck_pipeline_run": (
        c_int,
        [c_void_p, c_void_p, c_void_p, c_void_p, HANDLE],
    ),
    "tuck_graph_optimize": (
        c_int,
        [c_void_p, c_void_p, c_void_p, c_void_p, HANDLE],
    ),
    "tuck_report_free": (None, [c_void_p]),
    "tuck_report_print": (c_int, [c_void_p, c_void_p, WRITE_FN, c_void_p]),
}


def declare(functions: dict[str, tuple[Any, list[Any]]]) -> None:
    """Declares further functions of the library: name: (result type, argument types)."""
    for name, (result, arguments) in functions.items():
        function = getattr(lib, name)
        function.restype = result
        function.argtypes = arguments


declare(_FUNCTIONS)


class Handle:
    """An object of the library, freed with the last reference to it. `keep` are objects that must
    outlive it."""

    __slots__ = ("pointer", "_free", "_keep", "__weakref__")

    def __init__(self, pointer: int, free: Optional[Callable], *keep: Any) -> None:
        self.pointer = pointer
        self._free = free
        self._keep = keep

    @property
    def _as_parameter_(self) -> int:
        return self.pointer

    def __del__(self) -> None:
        if self._free is not None and self.pointer:
            self._free(self.pointer)
        self.pointer = 0


def text_of(function: Callable, *arguments: Any) -> str:
    """What a printing function of the library writes; its last two parameters are left out."""
    pieces: list[bytes] = []

    def write(_: Any, text: int, length: int) -> bool:
        pieces.append(ctypes.string_at(text, length))
        return True

    status = function(*arguments, WRITE_FN(write), None)
    if status != 0:
        raise Error(f"{function.__name__}: {status_text(status)}", STATUS.get(status, ""))
    return b"".join(pieces).decode("utf-8", "replace")


def status_text(status: int) -> str:
    return lib.tuck_status_text(status).decode()


class Diags:
    """Diagnostics of one or several calls."""

    def __init__(self) -> None:
        pointer = lib.tuck_diags_new(None)
        if not pointer:
            raise MemoryError
        self.handle = Handle(pointer, lib.tuck_diags_free)

    @property
    def _as_parameter_(self) -> int:
        return self.handle.pointer

    def __str__(self) -> str:
        return text_of(lib.tuck_diags_print, self.handle, 0)

    def __len__(self) -> int:
        return lib.tuck_diags_count(self.handle)

    def check(self, status: int, what: str = "") -> None:
        """Raises Error unless the status is that of success; MemoryError if memory ran out."""
        if status == 0:
            return
        if status == -1:
            raise MemoryError(what or "tuck")
        said = str(self).strip()
        message = said or status_text(status)
        raise Error(f"{what}: {message}" if what else message, STATUS.get(status, ""), said)


def make(function: Callable, free: Callable, diags: Diags, *arguments: Any, keep: tuple = ()) -> Handle:
    """Calls a function whose last argument is where it stores a new object."""
    out = c_void_p()
    diags.check(function(*arguments, ctypes.byref(out)))
    return Handle(out.value or 0, free, *keep)


class Settings:
    """Options by name; see tuck_settings_set() in tuck_experimental.h."""

    def __init__(self, **options: Any) -> None:
        diags = Diags()
        self.handle = make(lib.tuck_settings_new, lib.tuck_settings_free, diags, None)
        for key, value in options.items():
            self.set(key, value)

    def set(self, key: str, value: Any) -> None:
        """None leaves the default. A dict for `symbols` are values of symbols, a list for
        `symm_mem` names of groups."""
        if value is None:
            return
        if key == "symbols":
            for symbol, size in value.items():
                self.set("symbol", f"{symbol}={size}")
            return
        if key == "symm_mem" and not isinstance(value, str):
            for group in value:
                self.set(key, group)
            return
        if isinstance(value, bool):
            value = "yes" if value else "no"
        diags = Diags()
        diags.check(
            lib.tuck_settings_set(self.handle, key.encode(), str(value).encode(), diags)
        )

    @property
    def machine(self) -> int:
        return lib.tuck_settings_machine(self.handle)

    @property
    def run(self) -> int:
        return lib.tuck_settings_run(self.handle)

    @property
    def print(self) -> int:
        return lib.tuck_settings_print(self.handle)

    @property
    def explain(self) -> int:
        return lib.tuck_settings_explain(self.handle)
