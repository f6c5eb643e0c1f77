"""Which questions of their own the command line has, by their flag, in the order of --help.

Each module has add_flags(), wrong(), read() and run().
"""

from __future__ import annotations

QUESTIONS = {
    "users": "firstflight.commands.users",
    "find_cliff": "firstflight.commands.cliff",
    "page": "firstflight.commands.page",
    "objects": "firstflight.commands.page",
}
PAGES = {"page", "objects"}  # questions whose trials are known in advance
