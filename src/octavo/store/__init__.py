"""The prompt log: rows wait in a spool on disk, and go from there into a database."""
