"""What is done over a setting: a fetch, a page, a trace, a load; none knows another one."""
