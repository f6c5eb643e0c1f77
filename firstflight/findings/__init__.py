"""What is reported: findings, charts and claims, before anything renders them."""
