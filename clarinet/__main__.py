"""`python -m clarinet`: the library without the application."""

import sys

from clarinet.commands.cli import main

sys.exit(main())
