"""What an attack is aimed at, as data that crosses to another process."""

import msgspec

from probes.answer import Place

MODEL = "demo"
"""What every server under test calls its model, as the examples of its document do."""


class Target(msgspec.Struct, frozen=True):
    """keys: that the server knows. seed: of all that is random.
    scale: of the number of things that are sent; 1 is the size that the README names.
    examples: for each operation, where they are generated.
    """

    url: str
    keys: tuple[str, ...] = ()
    seed: int = 1
    scale: float = 1.0
    examples: int = 100

    @property
    def model(self) -> str:
        return MODEL

    @property
    def place(self) -> Place:
        return Place.of(self.url)

    @property
    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.keys[0]}"} if self.keys else {}

    def sized(self, number: int, least: int = 1) -> int:
        """So many of a kind at this scale."""
        return max(least, round(number * self.scale))
