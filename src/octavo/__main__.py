"""`python -m octavo` is the `octavo` command."""

from octavo.cli import app

if __name__ == "__main__":
    app()
