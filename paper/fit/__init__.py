"""The paper's figures from a fast simulation of the populations: for fits, not for results."""
