"""Reads captured packets: what they show of a connection and its path, and what they have to show.
"""
