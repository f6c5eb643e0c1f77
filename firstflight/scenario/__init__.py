"""What scenarios of all kinds share: the grammar of their files, published numbers."""
