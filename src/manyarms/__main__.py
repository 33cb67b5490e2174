"""Run the command line."""

import sys

from manyarms.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
