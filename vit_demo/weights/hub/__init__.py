"""Repositories of the Hugging Face Hub, and folders: downloaded, parsed and built within limits."""
