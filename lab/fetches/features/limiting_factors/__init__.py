"""Why a larger window changed the time of a transfer, or why none can; and what to try."""
