"""`python -m octavo.engine FD`: the worker process, speaking with its parent over the socket FD."""

import logging
import socket
import sys

from octavo.engine.registry import load_engine
from octavo.engine.worker.child import host

if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, format="octavo worker: %(message)s")
    sys.exit(host(socket.socket(fileno=int(sys.argv[1])), load_engine))
