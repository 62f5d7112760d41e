"""Arguments and results as JSON, by the function's own annotations.

Arguments travel as one JSON object by parameter name and are checked against the annotations twice: at submit, so that
a mistake fails where it is made, and at the call, because the code may have changed in between. Annotations may be all
that msgspec reads (dataclasses, structs, datetimes, enums, UUID, Decimal, ...), `Path`, and classes with pydantic's
`model_validate` and `model_dump`. Values that JSON would change silently are refused: NaN and infinities would arrive
as null, and bytes that are not annotated as bytes would arrive as base64 text.
"""

import inspect
import math
import re
import typing
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Collection,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import suppress
from pathlib import PurePath
from types import GenericAlias
from typing import Any, cast

import msgspec

DEEPEST = 200
"""How deep lists and objects may be nested in a value. Its readers recurse: Python and the JSON of the servers."""

_TEXT = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"')
_SQUARE = bytes.maketrans(b"{}", b"[]")
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_YIELDING = (Iterator, Generator, Iterable, AsyncIterator, AsyncGenerator, AsyncIterable)
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Signature:
    """The arguments and the result of one function. The first `skip` parameters, and those that are `hidden`, are not
    given by the caller."""

    def __init__(self, fn: Callable[..., Any], skip: int = 0, hidden: Collection[str] = ()) -> None:
        self.name = getattr(fn, "__name__", str(fn))
        hints = type_hints(fn)
        parameters = [p for p in list(inspect.signature(fn).parameters.values())[skip:] if p.name not in hidden]
        self.parameters = inspect.Signature(parameters)
        self._positional = [p.name for p in parameters if p.kind in _POSITIONAL]
        self._star = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), None)
        self._stars = next((p.name for p in parameters if p.kind is p.VAR_KEYWORD), None)
        self._keyword = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
        self._defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
        required = [p for p in parameters if p.kind is not p.VAR_POSITIONAL and p.kind is not p.VAR_KEYWORD]
        needs_names = any(p.kind is p.KEYWORD_ONLY and p.default is p.empty for p in required)
        fewest = sum(p.kind in _POSITIONAL and p.default is p.empty for p in required)
        self._needed = len(parameters) + 1 if needs_names else fewest
        self._by_name = not (self._star or self._stars or any(p.kind is p.POSITIONAL_ONLY for p in parameters))
        self._required = frozenset(p.name for p in required if p.default is p.empty)
        self._all = frozenset(p.name for p in parameters)
        self._decoder = _decoder_for(self.name, parameters, hints)
        self._loose: msgspec.json.Decoder[Any] | None = None
        self.plain = not (self._star or self._stars or self._keyword or self._defaults)
        """All parameters are positional and have no defaults."""
        self.hints = {p.name: hints.get(p.name, Any) for p in parameters}
        """The annotations of the parameters, by name."""
        self.all_hints = self.hints | {"return": hints.get("return", Any)}
        """The same, with that of the result as "return"."""
        self._result_type = _result_type(hints.get("return", Any))

    def encode(self, args: Sequence[object], kwargs: Mapping[str, object]) -> bytes:
        """Return the arguments as JSON. Raise TypeError or ValueError if the function cannot be called with them."""
        given = self._bind(args, kwargs)
        try:
            encoded = _encode(given)
            understood = self._decoder.decode(encoded)
        except (TypeError, ValueError, RecursionError) as error:
            raise TypeError(f"{self.name}: {_culprit(given) or error}") from None
        for name, value in given.items():
            if isinstance(value, (bytes, bytearray)) and isinstance(getattr(understood, name), str):
                raise TypeError(f"{self.name}: argument {name!r} is bytes; annotate it as bytes or pass text")
        return encoded

    @property
    def names(self) -> list[str]:
        """The names of the parameters, without `*args` and `**kwargs`."""
        return [name for name in self.parameters.parameters if name not in (self._star, self._stars)]

    def takes(self, name: str) -> bool:
        return name in self.names

    @property
    def required(self) -> list[str]:
        """The names of the parameters without a default."""
        named = (*_POSITIONAL, inspect.Parameter.KEYWORD_ONLY)
        return [p.name for p in self.parameters.parameters.values() if p.kind in named and p.default is p.empty]

    def encode_some(self, given: Mapping[str, object]) -> bytes:
        """Return some of the arguments as JSON. `decode` checks them when the others are known too."""
        if not self.open and (unknown := given.keys() - set(self.parameters.parameters)):
            raise TypeError(f"{self.name}{self.parameters}: it has no parameter {min(unknown)!r}")
        try:
            return encode_arguments(given)
        except (TypeError, ValueError) as error:
            raise TypeError(f"{self.name}: {error}") from None

    def all_arguments(self, args: Sequence[object], kwargs: Mapping[str, object]) -> dict[str, object]:
        """Return all arguments by name, with defaults."""
        bound = self.parameters.bind(*args, **kwargs)
        bound.apply_defaults()
        return dict(bound.arguments)

    @property
    def open(self) -> bool:
        """Whether the function has `**kwargs`, so that a call may give other names than its parameters."""
        return self._stars is not None

    def defaults(self) -> dict[str, Any]:
        """Return the defaults by name as plain JSON values, without those that have no JSON form."""
        found: dict[str, Any] = {}
        for name, value in self._defaults.items():
            with suppress(TypeError, ValueError):
                found[name] = msgspec.json.decode(_encode(value))
        return found

    def decode(self, encoded: bytes) -> tuple[list[Any], dict[str, Any]]:
        """Return positional and keyword arguments for the call. Raise ValueError if the stored arguments do not fit."""
        try:
            values = self._decoder.decode(self._settled(encoded))
        except RecursionError:
            raise ValueError("they are nested too deeply") from None
        if self.plain:
            return list(msgspec.structs.astuple(values)), {}
        found = {name: value for name, value in msgspec.structs.asdict(values).items() if value is not msgspec.UNSET}
        positional = [found[name] if name in found else self._defaults[name] for name in self._positional]
        positional.extend(found.get(self._star or "", ()))
        keyword = {name: found[name] for name in self._keyword if name in found}
        return positional, keyword | found.get(self._stars or "", {})

    def check(self, args: Mapping[str, object], some: bool = False) -> None:
        """Raise TypeError if stored arguments do not fit the function. `some`: the others come later."""
        try:
            self._checker(some).decode(self._settled(_encode(dict(args))))
        except (TypeError, ValueError, RecursionError) as error:
            raise TypeError(f"{self.name}: {_culprit(args) or error}") from None

    def _checker(self, some: bool) -> msgspec.json.Decoder[Any]:
        if not some:
            return self._decoder
        if self._loose is None:
            named = (*_POSITIONAL, inspect.Parameter.KEYWORD_ONLY)
            parameters = [
                p.replace(default=None) if p.kind in named else p for p in self.parameters.parameters.values()
            ]
            self._loose = _decoder_for(self.name, parameters, self.hints)
        return self._loose

    def gathered(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Return arguments by name as this function stores them; see `gathered`."""
        return gathered(args, list(self.parameters.parameters), self.open)

    def _settled(self, encoded: bytes) -> bytes:
        """Return stored arguments with those of `**kwargs` under its name: who does not know the code stores them
        beside the others."""
        if self._stars is None:
            return encoded
        args = msgspec.json.decode(encoded)
        return encoded if args.keys() <= self.parameters.parameters.keys() else msgspec.json.encode(self.gathered(args))

    def decode_plain(self, encoded: bytes) -> tuple[Any, ...]:
        """Return the arguments for the call of a `plain` function. Raise an error if the stored ones do not fit."""
        return msgspec.structs.astuple(self._decoder.decode(encoded))

    def decode_result(self, encoded: bytes) -> Any:
        return msgspec.json.decode(encoded, type=self._result_type, dec_hook=_dec_hook)

    def _bind(self, args: Sequence[object], kwargs: Mapping[str, object]) -> dict[str, object]:
        if not kwargs and self._needed <= len(args) <= len(self._positional):  # the usual call: `bind` would be slower
            return dict(zip(self._positional, args, strict=False))
        if not args and self._by_name and self._required <= kwargs.keys() <= self._all:  # the same, by name
            return {name: kwargs[name] for name in self.parameters.parameters if name in kwargs}
        try:
            return dict(self.parameters.bind(*args, **kwargs).arguments)
        except TypeError as error:
            raise TypeError(f"{self.name}{self.parameters}: {error}") from None


def gathered(args: Mapping[str, Any], parameters: Sequence[str], is_open: bool) -> dict[str, Any]:
    """Return arguments by name in their stored form: what `**kwargs` takes is one object, under the name of that
    parameter, the last one. `is_open`: the function has such a parameter."""
    if not is_open or not parameters or args.keys() <= set(parameters):
        return dict(args)
    found, stars = {name: value for name, value in args.items() if name in parameters}, parameters[-1]
    return found | {stars: found.get(stars, {}) | {name: args[name] for name in args if name not in found}}


def decode_as(kind: Any, encoded: bytes) -> Any:
    """Return a result as a value of the type `kind`."""
    return msgspec.json.decode(encoded, type=kind, dec_hook=_dec_hook)


def _result_type(hint: Any) -> Any:
    """Return the type of the results: a function that yields has the list of what it yields as its result."""
    if typing.get_origin(hint) in _YIELDING:
        return GenericAlias(list, (typing.get_args(hint)[0],))
    return list if hint in _YIELDING else hint


def encode_arguments(given: Mapping[str, object]) -> bytes:
    """Return arguments by name as JSON. Raise TypeError, which names the argument, if one has no JSON form."""
    try:
        return _encode(dict(given))
    except (TypeError, ValueError) as error:
        raise TypeError(_culprit(given) or str(error)) from None


def encode_result(value: object) -> bytes:
    """Return the value of a handler as JSON. Raise TypeError or ValueError if it has no JSON form."""
    return _encode(value)


def type_hints(fn: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(inspect.unwrap(fn), include_extras=True)
    except (NameError, AttributeError) as error:
        raise TypeError(
            f"{getattr(fn, '__name__', fn)}: {error}; its annotations are read when the task is defined: import the "
            "type at the top of the module, not under `if TYPE_CHECKING:`, and define it before the task"
        ) from None


def _decoder_for(
    name: str, parameters: Sequence[inspect.Parameter], hints: Mapping[str, Any]
) -> msgspec.json.Decoder[Any]:
    fields: list[Any] = []
    for p in parameters:
        hint = hints.get(p.name, Any)
        if p.kind is p.VAR_POSITIONAL:
            fields.append((p.name, GenericAlias(list, (hint,)), msgspec.UNSET))
        elif p.kind is p.VAR_KEYWORD:
            fields.append((p.name, GenericAlias(dict, (str, hint)), msgspec.UNSET))
        elif p.default is not p.empty:
            fields.append((p.name, hint, msgspec.UNSET))
        else:
            fields.append((p.name, hint))
    try:
        shape = msgspec.defstruct(name, fields, kw_only=True, forbid_unknown_fields=True)
        return msgspec.json.Decoder(shape, dec_hook=_dec_hook)
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None


def _encode(value: object) -> bytes:
    try:
        encoded = _encoder.encode(value)
        if not _is_flat(encoded):
            raise RecursionError
        if b"null" in encoded and not _finite(msgspec.to_builtins(value, enc_hook=_enc_hook)):
            raise ValueError("NaN and infinity have no JSON form")
    except RecursionError:
        raise ValueError(f"it is nested too deeply, or contains itself (at most {DEEPEST} levels)") from None
    return encoded


def _is_flat(encoded: bytes) -> bool:
    """Return whether lists and objects are nested at most DEEPEST levels deep.

    Most values have fewer brackets than that. For the others, drop everything but the brackets, then remove the
    innermost pairs DEEPEST times: what is left is nested deeper.
    """
    if len(encoded) <= DEEPEST or encoded.count(b"[") + encoded.count(b"{") <= DEEPEST:
        return True
    brackets = _TEXT.sub(b"", encoded).translate(_SQUARE, _NOT_BRACKETS)
    for _ in range(DEEPEST):
        if not brackets:
            return True
        brackets = brackets.replace(b"[]", b"")
    return not brackets


def _finite(value: Any) -> bool:
    """Return whether all numbers in a plain value are finite."""
    left: list[object] = [value]
    while left:
        found = left.pop()
        if isinstance(found, float) and not math.isfinite(found):
            return False
        if isinstance(found, dict):
            left.extend(cast("dict[object, object]", found).values())
        elif isinstance(found, list | tuple):
            left.extend(cast("Sequence[object]", found))
    return True


def _culprit(given: Mapping[str, object]) -> str | None:
    """Return an error text for the first argument that has no JSON form; None if all have one."""
    for name, value in given.items():
        try:
            _encode(value)
        except (TypeError, ValueError) as error:
            return f"argument {name!r} cannot be stored as JSON: {error}"
    return None


def _enc_hook(value: object) -> object:
    if isinstance(value, PurePath):
        return str(value)
    dump = getattr(value, "model_dump", None)
    if dump is not None and not isinstance(value, type):
        return dump(mode="json")
    kind = type(value)
    raise TypeError(f"{kind.__module__}.{kind.__qualname__} has no JSON form")


def _dec_hook(kind: Any, value: Any) -> Any:
    if kind is object:
        return value
    if PurePath in getattr(kind, "__mro__", ()):
        if not isinstance(value, str):
            raise ValueError(f"Expected `{kind.__name__}` as text, got `{type(value).__name__}`")
        return kind(value)
    validate = getattr(kind, "model_validate", None)
    if validate is not None:
        return validate(value)
    of_stored = getattr(kind, "_of_stored", None)
    if of_stored is not None:
        return of_stored(kind, value)
    raise TypeError(f"{getattr(kind, '__qualname__', kind)} cannot be read from JSON")


_encoder = msgspec.json.Encoder(enc_hook=_enc_hook)
