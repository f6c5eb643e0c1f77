"""What a command's network really did, from its kernel's capture: ./run.sh --capture, --report."""
