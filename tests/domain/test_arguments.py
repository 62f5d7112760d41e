"""Arguments: what a task can be called with survives the way through JSON, the rest is refused at submit."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from pathlib import Path, PurePosixPath
from typing import Any, Literal
from uuid import UUID

import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.domain.arguments import DEEPEST, Signature, encode_result


class Colour(Enum):
    TEAL = "teal"


class Size(IntEnum):
    BIG = 3


@dataclass
class Point:
    x: int
    tags: list[str]
    when: datetime | None = None


class Box(msgspec.Struct):
    at: Point
    label: str = ""


class User(pydantic.BaseModel):
    name: str
    home: Path | None = None


def typed(
    point: Point,
    box: Box,
    user: User,
    colour: Colour,
    size: Size,
    id: UUID,
    price: Decimal,
    when: datetime,
    day: date,
    span: timedelta,
    path: Path,
    maybe: Path | None,
    pure: PurePosixPath,
    data: bytes,
    pair: tuple[int, str],
    names: set[str],
    by_number: dict[int, Point],
    paths: list[Path],
    mode: Literal["r", "w"],
    anything: object,
) -> None: ...


VALUES: dict[str, Any] = {
    "point": Point(1, ["a"], datetime(2026, 11, 15, tzinfo=UTC)),
    "box": Box(Point(2, [])),
    "user": User(name="Ada", home=Path("/home/ada")),
    "colour": Colour.TEAL,
    "size": Size.BIG,
    "id": UUID(int=7),
    "price": Decimal("1.10"),
    "when": datetime(2026, 11, 15, 9, 30, 0, 5, tzinfo=UTC),
    "day": date(2026, 11, 15),
    "span": timedelta(hours=1, microseconds=1),
    "path": Path("a/b.png"),
    "maybe": None,
    "pure": PurePosixPath("/x"),
    "data": b"\x00\xff",
    "pair": (1, "one"),
    "names": {"a", "b"},
    "by_number": {1: Point(3, [])},
    "paths": [Path("a"), Path("b")],
    "mode": "w",
    "anything": {"deep": [1, None, "x"]},
}


def travel(fn: Callable[..., Any], *args: object, **kwargs: object) -> tuple[list[Any], dict[str, Any]]:
    signature = Signature(fn)
    return signature.decode(signature.encode(args, kwargs))


def test_values_come_back_as_their_annotations_say() -> None:
    positional, keyword = travel(typed, **VALUES)
    assert dict(zip(VALUES, positional, strict=True)) == VALUES
    assert [type(value) for value in positional] == [type(value) for value in VALUES.values()]
    assert keyword == {}


def test_an_optional_path_may_be_there() -> None:
    positional, _ = travel(typed, **VALUES | {"maybe": Path("c")})
    assert positional[list(VALUES).index("maybe")] == Path("c")


def test_plain_forms_of_typed_values_are_understood_too() -> None:
    def fn(point: Point, id: UUID, when: datetime) -> None: ...

    when = "2026-11-15T00:00:00Z"
    positional, _ = travel(fn, {"x": 1, "tags": []}, str(UUID(int=7)), when)
    assert positional == [Point(1, []), UUID(int=7), datetime(2026, 11, 15, tzinfo=UTC)]


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    )
)
def test_plain_values_need_no_annotation(value: object) -> None:
    def fn(value): ...  # type: ignore[no-untyped-def]

    assert travel(fn, value) == ([value], {})


def every_kind(a: int, /, b: int, c: int = 3, *rest: int, d: int, e: int = 5, **others: int) -> None: ...


@pytest.mark.parametrize(
    ("args", "kwargs", "expected"),
    [
        ((1, 2), {"d": 4}, ([1, 2, 3], {"d": 4})),
        ((1,), {"b": 2, "d": 4}, ([1, 2, 3], {"d": 4})),
        ((1, 2, 9, 8, 7), {"d": 4}, ([1, 2, 9, 8, 7], {"d": 4})),
        ((1, 2), {"d": 4, "e": 6, "f": 7}, ([1, 2, 3], {"d": 4, "e": 6, "f": 7})),
        ((1, 2), {"d": 4, "a": 9, "rest": 8, "others": 7}, ([1, 2, 3], {"d": 4, "a": 9, "rest": 8, "others": 7})),
    ],
)
def test_every_kind_of_parameter_is_called_as_it_was_given(
    args: tuple[int, ...], kwargs: dict[str, int], expected: tuple[list[int], dict[str, int]]
) -> None:
    assert travel(every_kind, *args, **kwargs) == expected


def test_arguments_by_name_are_stored_in_the_order_of_the_parameters() -> None:
    """The digest of the arguments is a unique key, so that a caller's order may not matter."""

    def f(a: int, b: int = 2, *, c: int, d: int = 4) -> None: ...

    def g(a: int, /, **more: int) -> None: ...

    signature = Signature(f)
    assert signature.encode((), {"c": 3, "a": 1}) == signature.encode((1,), {"c": 3}) == b'{"a":1,"c":3}'
    assert signature.encode((), {"d": 4, "c": 3, "b": 2, "a": 1}) == b'{"a":1,"b":2,"c":3,"d":4}'
    for wrong in ({"a": 1}, {"c": 1}, {"a": 1, "c": 3, "e": 5}):
        with pytest.raises(TypeError, match=r"^f\(a: int, b: int = 2, \*, c: int, d: int = 4\)"):
            signature.encode((), wrong)
    with pytest.raises(TypeError, match=r"positional.only|missing a required"):
        Signature(g).encode((), {"a": 1})


def test_an_argument_left_out_gets_the_default_of_the_code_that_runs() -> None:
    def before(name: str, width: int = 800) -> None: ...

    def now(name: str, width: int = 640) -> None: ...

    stored = Signature(before).encode(["a"], {})
    assert stored == b'{"name":"a"}'
    assert Signature(now).decode(stored) == (["a", 640], {})


def test_leading_parameters_of_the_engine_are_not_the_callers() -> None:
    def fn(ctx: object, name: str) -> None: ...

    signature = Signature(fn, skip=1)
    assert signature.decode(signature.encode(["Ada"], {})) == (["Ada"], {})


def resize(path: Path, width: int = 800, ratio: float | None = None, note: str = "") -> None: ...


def untyped(value): ...  # type: ignore[no-untyped-def]


itself: list[object] = []
itself.append(itself)


@pytest.mark.parametrize(
    ("fn", "args", "kwargs", "complaint"),
    [
        (resize, (), {}, r"resize\(.*missing a required argument: 'path'"),
        (resize, ("a", 1, 1.0, "", 5), {}, r"resize\(.*too many positional arguments"),
        (resize, ("a",), {"height": 1}, r"resize\(.*unexpected keyword argument 'height'"),
        (resize, ("a",), {"path": "b"}, r"resize\(.*multiple values for argument 'path'"),
        (resize, (1,), {}, r"resize: Expected `Path` as text, got `int` - at `\$\.path`"),
        (resize, ("a", "wide"), {}, r"resize: Expected `int`, got `str` - at `\$\.width`"),
        (resize, ("a", True), {}, r"resize: Expected `int`, got `bool` - at `\$\.width`"),
        (resize, ("a", None), {}, r"resize: Expected `int`, got `null` - at `\$\.width`"),
        (resize, ("a",), {"note": b"x"}, r"resize: argument 'note' is bytes; annotate it as bytes"),
        (resize, ("a",), {"note": "\udcff"}, r"resize: argument 'note' cannot be stored as JSON: .*surrogates"),
        (resize, ("a",), {"ratio": math.nan}, r"resize: argument 'ratio' .*NaN and infinity"),
        (resize, ("a",), {"ratio": -math.inf}, r"resize: argument 'ratio' .*NaN and infinity"),
        (untyped, ([{"a": (math.nan,)}],), {}, r"untyped: argument 'value' .*NaN and infinity"),
        (untyped, (b"x",), {}, r"untyped: argument 'value' is bytes"),
        (untyped, (object(),), {}, r"untyped: argument 'value' .*builtins.object has no JSON form"),
        (untyped, (resize,), {}, r"untyped: argument 'value' .*builtins.function has no JSON form"),
        (untyped, ({(1, 2): 3},), {}, r"untyped: argument 'value' .*tuple has no JSON form"),
        (untyped, (itself,), {}, r"untyped: argument 'value' .*nested too deeply, or contains itself"),
        (every_kind, (1, 2), {"d": "x"}, r"every_kind: Expected `int`, got `str` - at `\$\.d`"),
        (every_kind, (1, 2, 3, "x"), {"d": 4}, r"every_kind: Expected `int`, got `str` - at `\$\.rest\[0\]`"),
        (every_kind, (1, 2), {"d": 4, "f": "x"}, r"every_kind: Expected `int`, got `str` - at `\$\.others"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_in_a_sentence(
    fn: Callable[..., Any], args: tuple[object, ...], kwargs: dict[str, object], complaint: str
) -> None:
    with pytest.raises(TypeError, match=f"^{complaint}"):
        Signature(fn).encode(args, kwargs)


def test_a_model_says_what_is_wrong_with_it() -> None:
    def greet(user: User) -> None: ...

    with pytest.raises(TypeError, match=r"(?s)^greet: .*name\n.*valid string.*`\$\.user`"):
        Signature(greet).encode([{"name": 1}], {})


@pytest.mark.parametrize("stored", [b"", b"{", b"[]", b"{}", b'{"width":1}', b'{"path":"a","hue":1}', b'{"path":1}'])
def test_stored_arguments_that_fit_no_more_are_a_value_error(stored: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        Signature(resize).decode(stored)


def test_a_null_is_fine_where_it_is_meant() -> None:
    assert travel(resize, "a", ratio=None)[0] == [Path("a"), 800, None, ""]
    assert travel(untyped, [None, "null", 1.5])[0] == [[None, "null", 1.5]]


def test_an_annotation_that_cannot_be_read_is_refused_with_the_task_named() -> None:
    def lost(when: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821

    def mixed(path: Path | str) -> None: ...

    with pytest.raises(TypeError, match=r"^lost: name 'Nowhere' is not defined; its annotations are read"):
        Signature(lost)
    with pytest.raises(TypeError, match=r"^mixed: Type unions"):
        Signature(mixed)


def test_results_come_back_by_the_return_annotation() -> None:
    def make() -> Box: ...  # type: ignore[empty-body]

    def plain(): ...  # type: ignore[no-untyped-def]

    box = Box(Point(1, ["a"]), "b")
    assert Signature(make).decode_result(encode_result(box)) == box
    assert Signature(plain).decode_result(encode_result(box)) == msgspec.to_builtins(box)


def nested(levels: int, inner: object = None, as_dict: bool = False) -> object:
    value: object = inner
    for _ in range(levels):
        value = {"in": value} if as_dict else [value]
    return value


@pytest.mark.parametrize("inner", [None, 1, "]]]]}}}}", 'quote " and \\', [], {}])
@pytest.mark.parametrize("as_dict", [False, True])
def test_nesting_is_bounded_whatever_the_value_holds(inner: object, as_dict: bool) -> None:
    levels = DEEPEST - 1 - isinstance(inner, list | dict)  # the arguments themselves are one object
    (travelled,), _ = travel(untyped, nested(levels, inner, as_dict))
    assert travelled == nested(levels, inner, as_dict)
    wide = [nested(2, inner, as_dict)] * DEEPEST
    assert travel(untyped, wide)[0] == [wide]
    for deeper in (levels + 1, 900, 5000):
        with pytest.raises(TypeError, match=r"^untyped: .*nested too deeply"):
            Signature(untyped).encode((nested(deeper, inner, as_dict),), {})
        with pytest.raises(ValueError, match="nested too deeply"):
            encode_result(nested(deeper + 1, inner, as_dict))


def test_stored_arguments_nested_too_deeply_to_read_are_a_value_error() -> None:
    """How deep that is depends on Python: 3.11 reads a thousand levels, 3.13 some thousands more."""
    with pytest.raises(ValueError, match="nested too deeply"):
        Signature(untyped).decode(b'{"value":' + b"[" * 100_000 + b"]" * 100_000 + b"}")


@pytest.mark.parametrize("result", [object(), math.nan, {"loss": [math.inf]}, "\ud800", itself, {1: resize}])
def test_a_result_that_json_would_change_is_refused(result: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        encode_result(result)
