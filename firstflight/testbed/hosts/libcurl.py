"""curl's library with OpenSSL, by ctypes: what the client of pages needs of its multi interface.

Debian's pycurl has the library that is linked with GnuTLS. That one offers no choice of key
exchanges, and its hello is another one than that of curl. The names are those of pycurl;
curl/curl.h and curl/multi.h have the numbers, which are part of the library's stable interface.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

LIBRARY = "libcurl.so.4"

_LONG, _OBJECT, _FUNCTION = 0, 10_000, 20_000  # CURLOPTTYPE_*
# Options of a transfer.
URL, PROXY, USERAGENT = _OBJECT + 2, _OBJECT + 4, _OBJECT + 18
CAINFO, RESOLVE, SSL_EC_CURVES = _OBJECT + 65, _OBJECT + 203, _OBJECT + 298
HTTPHEADER, CERTINFO = _OBJECT + 23, _LONG + 172
SSLVERSION, FORBID_REUSE, HTTP_VERSION = _LONG + 32, _LONG + 75, _LONG + 84
SSL_SESSIONID_CACHE, PIPEWAIT, MAXAGE_CONN = _LONG + 150, _LONG + 237, _LONG + 288
NOSIGNAL = _LONG + 99
WRITEFUNCTION, HEADERFUNCTION, SOCKOPTFUNCTION = _FUNCTION + 11, _FUNCTION + 79, _FUNCTION + 148
_SHARE, _ERROR_TEXT = _OBJECT + 100, _OBJECT + 10
# Options of several transfers.
M_PIPELINING, M_MAXCONNECTS, M_MAX_HOST_CONNECTIONS = _LONG + 3, _LONG + 6, _LONG + 7
M_SOCKETFUNCTION, M_TIMERFUNCTION = _FUNCTION + 1, _FUNCTION + 4
# What can be asked of a transfer (CURLINFO_*).
_INFO_LONG, _INFO_DOUBLE, _INFO_POINTER = 0x200000, 0x300000, 0x400000
RESPONSE_CODE, HEADER_SIZE, NUM_CONNECTS = _INFO_LONG + 2, _INFO_LONG + 11, _INFO_LONG + 26
LOCAL_PORT, INFO_HTTP_VERSION = _INFO_LONG + 42, _INFO_LONG + 46
PRETRANSFER_TIME = _INFO_DOUBLE + 6
_CERTIFICATES = _INFO_POINTER + 34
# Values.
PIPE_NOTHING, PIPE_MULTIPLEX = 0, 2
CURL_HTTP_VERSION_1_1, CURL_HTTP_VERSION_2_0, CURL_HTTP_VERSION_2TLS = 2, 3, 4
TLS_1_3 = 7 << 16 | 7  # CURL_SSLVERSION_TLSv1_3, at least and at most
_ALTERNATIVE_NAMES = "X509v3 Subject Alternative Name:"
SOCKOPT_OK, PAUSE_CONT, PAUSE_RECV = 0, 0, 1
POLL_IN, POLL_OUT, POLL_REMOVE = 1, 2, 4
CSELECT_IN, CSELECT_OUT, CSELECT_ERR, SOCKET_TIMEOUT = 1, 2, 4, -1
_DONE, _GLOBAL_DEFAULT = 1, 3  # CURLMSG_DONE, CURL_GLOBAL_DEFAULT
_SHARED, _SSL_SESSIONS = 1, 4  # CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION
_ERROR_BYTES = 256  # CURL_ERROR_SIZE

_Pointer, _Int, _Data = ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p
_Bytes = ctypes.CFUNCTYPE(ctypes.c_size_t, _Pointer, ctypes.c_size_t, ctypes.c_size_t, _Data)
_SockOpt = ctypes.CFUNCTYPE(_Int, _Data, _Int, _Int)
_Socket = ctypes.CFUNCTYPE(_Int, _Pointer, _Int, _Int, _Data, _Data)
_Timer = ctypes.CFUNCTYPE(_Int, _Pointer, ctypes.c_long, _Data)


class _Result(ctypes.Union):
    """`data` of struct CURLMsg."""

    _fields_ = [("pointer", _Pointer), ("code", _Int)]


class _Message(ctypes.Structure):
    """struct CURLMsg."""

    _fields_ = [("kind", _Int), ("handle", _Pointer), ("result", _Result)]


class _Words(ctypes.Structure):
    """struct curl_slist."""

    _fields_ = [("data", ctypes.c_char_p), ("next", _Pointer)]


class _Certificates(ctypes.Structure):
    """struct curl_certinfo: a list of words for each certificate, the server's own first."""

    _fields_ = [("count", _Int), ("lists", ctypes.POINTER(ctypes.POINTER(_Words)))]


class CurlError(Exception):
    """The library refused a call; the message has its words."""


@lru_cache
def library() -> Any:
    """The library, started. Raises OSError where this machine lacks it."""
    found: Any = ctypes.CDLL(LIBRARY)
    for name in ("easy_init", "multi_init", "share_init", "slist_append", "version_info"):
        getattr(found, f"curl_{name}").restype = _Pointer
    found.curl_easy_strerror.restype = ctypes.c_char_p
    found.curl_multi_info_read.restype = ctypes.POINTER(_Message)
    _check(found.curl_global_init(ctypes.c_long(_GLOBAL_DEFAULT)))
    return found


def version() -> str:
    """The library's version, as "7.88.1". Raises OSError."""
    # struct curl_version_info_data: a number, then the version.
    place = library().curl_version_info(_Int(0)) + ctypes.sizeof(_Pointer)
    return str((ctypes.c_char_p.from_address(place).value or b"").decode("ascii"))


def _check(code: int) -> None:
    if code:
        raise CurlError(f"curl {code}: {words_of(code)}")


def words_of(code: int) -> str:
    """The library's words for the result of a transfer."""
    return str(library().curl_easy_strerror(_Int(code)).decode(errors="replace"))


class Sessions:
    """TLS sessions that several transfers share, so that later connections resume them."""

    def __init__(self) -> None:
        self.handle = _Pointer(library().curl_share_init())
        _check(library().curl_share_setopt(self.handle, _Int(_SHARED), _Int(_SSL_SESSIONS)))

    def close(self) -> None:
        """Forget them, once no transfer uses them."""
        library().curl_share_cleanup(self.handle)


class Curl:
    """One transfer."""

    def __init__(self) -> None:
        self.library = library()
        self.handle = _Pointer(self.library.curl_easy_init())
        self.held: list[object] = []  # callbacks, which have to live as long as the handle
        self.lists: list[ctypes.c_void_p] = []
        self.error = ctypes.create_string_buffer(_ERROR_BYTES)
        self._set(_ERROR_TEXT, self.error)

    def setopt(self, option: int, value: Any) -> None:
        """Set an option: a number, a text, a list of texts, sessions, or a function.

        Raises CurlError.
        """
        if isinstance(value, int):
            self._set(option, ctypes.c_long(value))
        elif isinstance(value, str):
            self._set(option, ctypes.c_char_p(value.encode()))
        elif isinstance(value, list):
            self._set(option, self._list(value))
        else:
            called: object = _Bytes(_taking_bytes(value))
            if option == SOCKOPTFUNCTION:
                called = _SockOpt(_binding(value))
            self.held.append(called)
            self._set(option, called)

    def perform(self) -> None:
        """Make this transfer alone. Raises CurlError."""
        _check(self.library.curl_easy_perform(self.handle))

    def share(self, sessions: Sessions) -> None:
        """Use and keep TLS sessions there."""
        self._set(_SHARE, sessions.handle)

    def getinfo(self, info: int) -> Any:
        """What the library knows of the transfer: a whole number, or seconds."""
        value: Any = ctypes.c_long() if info < _INFO_DOUBLE else ctypes.c_double()
        _check(self.library.curl_easy_getinfo(self.handle, _Int(info), ctypes.byref(value)))
        return value.value

    def certified_names(self) -> str:
        """What the server's certificate is for, in OpenSSL's words; "" for unknown.

        As "IP Address:10.0.0.2, DNS:host1.page.example". CERTINFO has to be set.
        """
        found = ctypes.POINTER(_Certificates)()
        _check(self.library.curl_easy_getinfo(self.handle, _Int(_CERTIFICATES),
                                              ctypes.byref(found)))

        if not found or not found.contents.count:
            return ""
        words = found.contents.lists[0]
        while words:
            line = (words.contents.data or b"").decode("ascii", "replace")
            if line.startswith(_ALTERNATIVE_NAMES):
                return line.removeprefix(_ALTERNATIVE_NAMES).strip()
            words = ctypes.cast(words.contents.next, ctypes.POINTER(_Words))
        return ""

    def errstr(self) -> str:
        """Why the transfer failed, in the library's words; "" where it says nothing."""
        return self.error.value.decode(errors="replace")

    def pause(self, bits: int) -> None:
        """Let the library stop to receive, or go on. Raises CurlError."""
        _check(self.library.curl_easy_pause(self.handle, _Int(bits)))

    def close(self) -> None:
        self.library.curl_easy_cleanup(self.handle)
        for words in self.lists:
            self.library.curl_slist_free_all(words)

    def _set(self, option: int, value: object) -> None:
        _check(self.library.curl_easy_setopt(self.handle, _Int(option), value))

    def _list(self, texts: Sequence[str]) -> ctypes.c_void_p:
        words = _Pointer()
        for text in texts:
            words = _Pointer(self.library.curl_slist_append(words, ctypes.c_char_p(text.encode())))
        self.lists.append(words)
        return words


class CurlMulti:
    """Several transfers at once, over connections that they use one after another."""

    def __init__(self) -> None:
        self.library = library()
        self.handle = _Pointer(self.library.curl_multi_init())
        self.held: list[object] = []
        self.transfers: dict[int, Curl] = {}

    def setopt(self, option: int, value: int | Callable[..., object]) -> None:
        """Set a number, or what is called of sockets and of the timer. Raises CurlError."""
        passed: object
        if isinstance(value, int):
            passed = ctypes.c_long(value)
        elif option == M_SOCKETFUNCTION:
            passed = _Socket(_watching(value))
        else:
            passed = _Timer(_timing(value))
        self.held.append(passed)
        _check(self.library.curl_multi_setopt(self.handle, _Int(option), passed))

    def add_handle(self, transfer: Curl) -> None:
        self.transfers[transfer.handle.value or 0] = transfer
        _check(self.library.curl_multi_add_handle(self.handle, transfer.handle))

    def remove_handle(self, transfer: Curl) -> None:
        self.transfers.pop(transfer.handle.value or 0, None)
        _check(self.library.curl_multi_remove_handle(self.handle, transfer.handle))

    def socket_action(self, fd: int, flags: int) -> None:
        """Let the library work on one socket, or on its timer. Raises CurlError."""
        running = _Int()
        _check(self.library.curl_multi_socket_action(self.handle, _Int(fd), _Int(flags),
                                                     ctypes.byref(running)))

    def info_read(self) -> tuple[int, list[Curl], list[tuple[Curl, int, str]]]:
        """How many messages are left, and the transfers that succeeded and that failed.

        Of a failed one also the library's number of the error, and its words.
        """
        succeeded: list[Curl] = []
        failed: list[tuple[Curl, int, str]] = []
        left = _Int()
        while message := self.library.curl_multi_info_read(self.handle, ctypes.byref(left)):
            if message.contents.kind != _DONE:
                continue
            transfer = self.transfers[message.contents.handle]
            code = message.contents.result.code
            if code:
                failed.append((transfer, code, transfer.errstr() or words_of(code)))
            else:
                succeeded.append(transfer)
        return left.value, succeeded, failed

    def close(self) -> None:
        self.library.curl_multi_cleanup(self.handle)


# The library's callbacks as functions of Python's values -------------------------------

def _taking_bytes(take: Callable[[bytes], object]) -> Callable[..., int]:
    def called(data: int, size: int, count: int, _: object) -> int:
        take(ctypes.string_at(data, size * count))
        return size * count
    return called


def _binding(bind: Callable[[int, int], int]) -> Callable[..., int]:
    def called(_: object, fd: int, purpose: int) -> int:
        return bind(fd, purpose)
    return called


def _watching(watch: Callable[..., object]) -> Callable[..., int]:
    def called(_: object, fd: int, what: int, of_multi: object, of_socket: object) -> int:
        watch(what, fd, of_multi, of_socket)
        return 0
    return called


def _timing(set_timer: Callable[..., object]) -> Callable[..., int]:
    def called(_: object, wait_ms: int, of_multi: object) -> int:
        set_timer(wait_ms)
        return 0
    return called
