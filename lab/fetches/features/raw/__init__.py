"""Published raw values, one fetch a cell, next to what was measured."""
