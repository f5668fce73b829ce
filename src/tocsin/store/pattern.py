"""Search words as ILIKE patterns: what a person types is found as typed."""

_SPECIAL = str.maketrans({"\\": "\\\\", "%": "\\%", "_": "\\_"})


def containing(words: str | None) -> str | None:
    """The pattern of texts that contain these words; None, which matches all, when there are none."""
    return f"%{words.translate(_SPECIAL)}%" if words else None
