"""What is known of TCP and packets, whatever is studied; imports no kind of study."""
