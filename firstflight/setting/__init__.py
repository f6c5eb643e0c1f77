"""What a trial runs over: the network, TCP, TLS, the server and the kernel."""
