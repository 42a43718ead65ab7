"""`python -m jaxmeta` is the command `jaxmeta`."""

import sys

from jaxmeta.cli import main

if __name__ == "__main__":
    sys.exit(main())
