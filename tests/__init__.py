"""The proof: a mirror of src/tocsin, with what the tests themselves stand on in support/."""
