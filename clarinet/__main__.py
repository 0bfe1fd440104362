"""`python -m clarinet`: the library without the application."""

import sys

from clarinet.cli import main

sys.exit(main())
