"""`python -m plankeeper`: the command line."""

from plankeeper.cli import main

main()
