"""Builders of captures that tests of several rooms need."""
