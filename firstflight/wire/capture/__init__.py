"""What a command's network really did, from what its kernel wrote: ./run.sh --capture, --report."""
