"""How fast a server answers: a load generator, peers to compare with, and the comparison (README.md)."""
