"""`python -m manyways`."""

from manyways.cli import main

main()
