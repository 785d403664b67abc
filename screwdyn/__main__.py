"""Run the command ``screwdyn`` as ``python -m screwdyn``."""

import sys

from screwdyn.cli.main import main

sys.exit(main())
