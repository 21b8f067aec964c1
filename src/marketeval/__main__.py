"""`python -m marketeval` is the command line."""

from marketeval.apps.cli.main import main

if __name__ == "__main__":
    main()
