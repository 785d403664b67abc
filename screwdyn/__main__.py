"""``python -m screwdyn`` is the command ``screwdyn``."""

import sys

from .cli import main

sys.exit(main())
