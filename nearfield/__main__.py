"""python -m nearfield."""

from nearfield.cli import main

main()
