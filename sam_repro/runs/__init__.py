"""What has been run: results, the ledger and what is checked of them. Imports no torch to read one."""
