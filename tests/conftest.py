"""For all tests."""

from hypothesis import settings

settings.register_profile("octavo", deadline=None)  # no test asserts a time
settings.load_profile("octavo")
