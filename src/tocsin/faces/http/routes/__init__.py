"""One file per noun of the REST face."""
