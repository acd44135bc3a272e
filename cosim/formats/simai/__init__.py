"""SimAI and AICB workload files."""
