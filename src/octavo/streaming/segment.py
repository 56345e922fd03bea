"""Text with the channel it belongs to."""

from octavo.core.channels import Channel

Segment = tuple[Channel, str]
"""What the machines behind the detokenizer hand on, in order and without losing a character: what is dropped goes on
as HIDDEN. An empty text says which channel comes next."""
