"""Files that people write, read so that each value keeps its line: YAML, XML, text."""
