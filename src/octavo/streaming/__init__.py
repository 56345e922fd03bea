"""From tokens to text: push/flush machines without I/O or clock, giving the same answer for any chunking."""

from octavo.streaming.choice_stream import ChoiceStream
from octavo.streaming.content_filter import ContentFilter
from octavo.streaming.detokenizer import Detokenizer
from octavo.streaming.stop_strings import StopStrings

__all__ = ["ChoiceStream", "ContentFilter", "Detokenizer", "StopStrings"]
