"""For all tests."""

import signal

from hypothesis import settings

settings.register_profile("octavo", deadline=None)  # no test asserts a time
settings.load_profile("octavo")

# A shell that starts us in the background has us ignore SIGINT, and what the tests interrupt would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
