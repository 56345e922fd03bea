"""Whose key it is."""

import asyncio
import time
from collections.abc import Mapping

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.core.api_key import MAX_LENGTH, ApiKey, digest_of, is_key, new_key
from octavo.core.caller import ANYONE, Caller, KeyLimits, Scope
from octavo.core.keyring import ClosedKeyring, OpenKeyring, StoredKeys
from octavo.errors import Unauthenticated
from octavo.store.stored_key import StoredKey

GENERATE = frozenset({Scope.GENERATE})
STORED = {"name": "ann", "sha256": "0" * 64, "scopes": ["generate"], "created": "2026-01-31T12:00:00Z"}


def key(text: str, *, limits: KeyLimits = ANYONE.limits, expires: float = float("inf")) -> ApiKey:
    return ApiKey(digest_of(text), Caller(f"key-{text}", GENERATE, limits), expires)


def stored(*keys: ApiKey) -> StoredKeys:
    async def current() -> Mapping[bytes, ApiKey]:
        return {key.digest: key for key in keys}

    return current


def test_a_new_key_has_256_random_bits_and_is_known_by_its_beginning() -> None:
    keys = {new_key() for _ in range(100)}

    assert len(keys) == 100
    assert all(key.startswith("octv_") and len(key) == 5 + 43 and is_key(key) for key in keys)


async def test_an_operators_key_may_do_everything_and_has_the_same_id_at_every_start() -> None:
    callers = [await ClosedKeyring(["one", "two"]).caller(key) for key in ("one", "two", "one")]

    assert all(caller.scopes == set(Scope) for caller in callers)
    assert callers[0].key_id == callers[2].key_id != callers[1].key_id


async def test_an_id_shows_nothing_of_its_key() -> None:
    caller = await ClosedKeyring(["secret"]).caller("secret")

    assert "secret" not in caller.key_id
    assert caller.key_id.removeprefix("own:") not in digest_of("secret").hex()


async def test_no_stored_key_has_the_id_of_an_operators_key() -> None:
    """Its limits and its requests would be taken for the operator's."""
    own = await ClosedKeyring(["own"]).caller("own")
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({**STORED, "id": own.key_id}, StoredKey)


async def test_a_stored_key_that_is_the_operators_own_is_that() -> None:
    caller = await ClosedKeyring(["a"], stored(key("a"))).caller("a")

    assert caller.scopes == set(Scope)


async def test_a_stored_key_has_its_own_id_and_scopes() -> None:
    keyring = ClosedKeyring(["own"], stored(key("a"), key("b")))

    assert await keyring.caller("b") == Caller("key-b", GENERATE)
    assert (await keyring.caller("own")).scopes == set(Scope)


async def test_keys_that_come_and_go_count_at_once() -> None:
    keys: dict[bytes, ApiKey] = {}

    async def current() -> Mapping[bytes, ApiKey]:
        return keys

    keyring = ClosedKeyring([], current)
    with pytest.raises(Unauthenticated):
        await keyring.caller("a")

    keys[digest_of("a")] = key("a")
    assert (await keyring.caller("a")).key_id == "key-a"

    keys.clear()
    with pytest.raises(Unauthenticated):
        await keyring.caller("a")


async def test_an_expired_key_is_refused() -> None:
    keyring = ClosedKeyring([], stored(key("old", expires=time.time()), key("new", expires=time.time() + 1000)))

    assert (await keyring.caller("new")).key_id == "key-new"
    with pytest.raises(Unauthenticated):
        await keyring.caller("old")


async def test_a_keys_own_limits_come_before_those_of_all_keys() -> None:
    keyring = ClosedKeyring(
        ["own"],
        stored(key("a", limits=KeyLimits(tokens=5))),
        default_limits=KeyLimits(requests=10, tokens=20),
    )

    assert (await keyring.caller("a")).limits == KeyLimits(requests=10, tokens=5)
    assert (await keyring.caller("own")).limits == KeyLimits(requests=10, tokens=20)


@given(st.text(max_size=600) | st.text(st.characters(codec="ascii"), max_size=20))
def test_any_other_text_is_refused_and_never_repeated(text: str) -> None:
    if text == "the-key":
        return
    with pytest.raises(Unauthenticated) as caught:
        asyncio.run(ClosedKeyring([], stored(key("the-key"))).caller(text))

    assert caught.value.message in (
        "A key is needed: send it in one header, as `Authorization: Bearer KEY`.",
        "This key is not known, or no longer.",
    )


@pytest.mark.parametrize("text", ["", "a b", "\n", "ü", "x" * (MAX_LENGTH + 1), "a\0"])
def test_an_operators_key_that_no_header_can_carry_is_an_error_that_does_not_name_it(text: str) -> None:
    with pytest.raises(ValueError, match=f"^A key has 1 to {MAX_LENGTH} visible ASCII characters, and no space.$"):
        ClosedKeyring(["fine", text])


async def test_a_closed_keyring_without_a_key_lets_nobody_in() -> None:
    for text in ("", "a"):
        with pytest.raises(Unauthenticated):
            await ClosedKeyring([]).caller(text)


@pytest.mark.parametrize("text", ["", "any", "ü" * 1000])
async def test_an_open_keyring_takes_any_key_and_none(text: str) -> None:
    assert await OpenKeyring().caller(text) == ANYONE
