"""Octavo: a text-generation server with OctoAI's and OpenAI's API."""
