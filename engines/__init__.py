"""How trials get to a Linux kernel: `uml` boots one, `host` takes the running one."""
