"""`python -m tocsin`: the same as the `tocsin` command."""

from tocsin.faces.cli.app import main

if __name__ == "__main__":
    main()
