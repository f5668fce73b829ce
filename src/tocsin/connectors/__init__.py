"""One file is one provider."""
