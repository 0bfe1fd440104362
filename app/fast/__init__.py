"""A faster execution of what annotators do with every answer; README.md says what it buys and costs."""
