"""What a real server sends in its first flight: the only package that talks to the network."""
