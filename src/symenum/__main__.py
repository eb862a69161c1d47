"""`python -m symenum`: the command line."""

from symenum.cli import main

if __name__ == "__main__":
    main(prog_name="symenum")
