"""Models of the kinds that people have answers parsed into."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeVar
from uuid import UUID

from pydantic import AnyUrl, AwareDatetime, BaseModel, ConfigDict, Field, RootModel, SecretStr, TypeAdapter
from typing_extensions import TypedDict

Item = TypeVar("Item")


class Color(Enum):
    RED = "red"
    GREEN = "green"
    BLUE = 'bl"ue\n'


class Priority(IntEnum):
    LOW = 1
    HIGH = 10


class Address(BaseModel):
    """Where somebody lives."""

    street: str
    city: str = Field(description="The city's name", examples=["Köln"])
    postcode: str | None = None


class Person(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str
    age: int
    height: float
    is_member: bool
    nothing: None
    address: Address
    others: list[Address] = []


class Step(BaseModel):
    explanation: str
    output: str


class MathAnswer(BaseModel):
    steps: list[Step]
    final_answer: str


class Dates(BaseModel):
    day: date
    moment: datetime
    aware: AwareDatetime
    at: time
    takes: timedelta


class Kinds(BaseModel):
    id: UUID
    price: Decimal
    site: AnyUrl
    v4: IPv4Address
    v6: IPv6Address
    secret: SecretStr
    file: Path
    raw: bytes


class Price(BaseModel):
    amount: Decimal = Field(max_digits=8, decimal_places=2, ge=0)
    discount: Decimal | None = None


class Choices(BaseModel):
    color: Color
    colors: set[Color]
    priority: Priority
    size: Literal["S", "M", "L"]
    mixed: Literal[1, "one", True, None]
    only: Literal["only"] = "only"


class Unions(BaseModel):
    number: int | str
    wide: int | float | bool | None
    value: list[int] | dict[str, int] | None = None
    person: Person | Address


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = Field(ge=0, le=9)


class Dog(BaseModel):
    kind: Literal["dog"]
    breed: str


class Owner(BaseModel):
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]
    pets: list[Annotated[Cat | Dog, Field(discriminator="kind")]] = Field(max_length=3)


class Tree(BaseModel):
    value: int
    children: list["Tree"] = []


class Linked(BaseModel):
    value: str
    next: "Linked | None" = None


class Expression(BaseModel):
    operator: Literal["+", "*"]
    left: "Expression | Number"
    right: "Expression | Number"


class Number(BaseModel):
    number: float


class Constrained(BaseModel):
    positive: int = Field(gt=0)
    percent: float = Field(ge=0, le=100)
    below: float = Field(gt=-1.5, lt=1.5)
    even: int = Field(multiple_of=2, ge=-10, le=10)
    code: str = Field(pattern=r"^[A-Z]{2}\d{3}$")
    holds: str = Field(pattern=r"\d+-x")
    short: str = Field(min_length=2, max_length=5)
    few: list[int] = Field(min_length=1, max_length=3)
    most: dict[str, int] = Field(max_length=2)


class Containers(BaseModel):
    pair: tuple[int, str]
    many: tuple[float, ...]
    strings: set[str]
    numbers: frozenset[int]
    by_name: dict[str, Address]
    by_color: dict[Color, int]
    by_number: dict[int, str]
    nested: list[list[dict[str, list[int]]]]
    anything: Any
    any_list: list[Any]
    any_dict: dict[str, Any]


class Point(NamedTuple):
    x: int
    y: int = 0


class Settings(TypedDict, total=False):
    name: str
    level: int


@dataclass
class Size:
    width: int
    height: int = 1


class Others(BaseModel):
    point: Point
    settings: Settings
    size: Size


class Aliased(BaseModel):
    model_config = ConfigDict(populate_by_name=True, extra="allow", title="With aliases", json_schema_extra={"x-a": 1})

    class_name: str = Field(alias="class", deprecated=True)
    schema_url: str = Field(alias="$schema", default="")
    odd: int = Field(alias='a "b"/~\\ü')


class Page(BaseModel, Generic[Item]):
    items: list[Item]
    next_page: int | None = Field(default=None, ge=0)


class Names(RootModel[list[str]]):
    """Names alone."""


_TYPES: Sequence[Any] = (
    *(Address, Person, MathAnswer, Dates, Kinds, Price, Choices, Unions, Owner, Tree, Linked, Expression),
    *(Constrained, Containers, Others, Aliased, Page[Person], Names),
    *(Color, int, list[Step], dict[str, float], Cat | Dog, Settings, Size),
)

MODELS: Mapping[str, TypeAdapter[Any]] = {getattr(each, "__name__", str(each)): TypeAdapter(each) for each in _TYPES}
