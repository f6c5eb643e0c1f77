"""What figures of all workloads share: how two measurements are compared."""
