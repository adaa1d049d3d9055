"""Benchmarks: time, memory and faithfulness compared with other libraries."""
