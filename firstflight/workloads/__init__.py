"""The four workloads: fetches, pages, traces and loads. None of them imports another one."""
