"""The only place with SQL: one module per table family."""
