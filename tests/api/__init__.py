"""What is public: names, examples in docstrings, runs and their tables from Python."""
