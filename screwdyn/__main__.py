"""``python -m screwdyn`` is the command ``screwdyn``."""

import sys

from screwdyn.cli.main import main

sys.exit(main())
