"""What is not about behaviour and still must hold: sizes, names, words, the map, the locks."""
