"""Who may ask for what, and how much."""

from pathlib import Path

from pydantic import BaseModel, field_validator

from octavo.config.option import option
from octavo.core.api_key import MAX_LENGTH, is_key
from octavo.core.caller import MAX_LIMIT

ACCESS = "Access"


class AccessSettings(BaseModel):
    api_key: tuple[str, ...] = option(
        (),
        "A key that may do everything; may be given several times. Better in the environment than on the command line.",
        panel=ACCESS,
        metavar="KEY",
        repr=False,  # neither here nor in messages
    )
    keys_file: Path | None = option(
        None, "File of the keys that octavo keys makes and revokes.", panel=ACCESS, metavar="FILE"
    )
    allow_hosts: tuple[str, ...] = option(
        (),
        "A name by which browsers may call the server, or * for any; may be given several times. "
        "Addresses and localhost always may, and any name where there are keys.",
        panel=ACCESS,
        metavar="HOST",
    )
    allow_origins: tuple[str, ...] = option(
        (),
        "An origin whose pages may call the server (CORS), as https://example.com, or * for any; "
        "may be given several times.",
        panel=ACCESS,
        metavar="ORIGIN",
    )
    key_requests: int | None = option(
        None, "Requests that a key may make in a minute.", panel=ACCESS, metavar="N", ge=1, le=MAX_LIMIT
    )
    key_tokens: int | None = option(
        None,
        "Tokens, of prompts and answers, that a key may use in a minute.",
        panel=ACCESS,
        metavar="N",
        ge=1,
        le=MAX_LIMIT,
    )
    key_concurrent: int | None = option(
        None, "Requests of a key that may run at the same time.", panel=ACCESS, metavar="N", ge=1, le=MAX_LIMIT
    )

    @field_validator("api_key")
    @classmethod
    def _refuse_no_keys(cls, keys: tuple[str, ...]) -> tuple[str, ...]:
        """Whoever sets it means to have keys: the server must not stand open because a list came out empty."""
        if not keys:
            raise ValueError("must have a key")
        if not all(map(is_key, keys)):
            raise ValueError(f"must be 1 to {MAX_LENGTH} visible ASCII characters, and no space")
        return keys

    @field_validator("keys_file", mode="before")
    @classmethod
    def _refuse_no_file(cls, path: object) -> object:
        if path == "":
            raise ValueError("must be the path of a file")
        return path

    @property
    def has_keys(self) -> bool:
        """Whether a key is needed to ask; the file may have none yet."""
        return bool(self.api_key) or self.keys_file is not None
