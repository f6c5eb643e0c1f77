"""What captured packets show of TCP: exchanges, flights, retransmissions."""
