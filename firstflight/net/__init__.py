"""What stands on the wire and in qdiscs: headers, captures, netlink, tc; nothing else of ours."""
