"""`python -m raymarch` is `raymarch`."""

from raymarch.cli import main

if __name__ == "__main__":
    main()
