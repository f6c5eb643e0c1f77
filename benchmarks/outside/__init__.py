"""The project against others: the model, a stock kernel, ns-3, the kernel's own tests."""
