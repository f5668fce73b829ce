"""Phone numbers: E.164 where the number says its country, as typed where it does not."""

import re
from typing import Final

from tocsin.domain.errors import Invalid

TYPED_MAX: Final = 40
_DIGITS_MIN: Final = 3
_TYPED = re.compile(r"\+?[0-9 ()./\u00a0-]+")


def check_phone(phone: str, field: str) -> str:
    """`+33 6 12 34 56 78` as `+33612345678`; a national number keeps its digits.

    Raises Invalid naming `field` for what is no phone number; the error never repeats it.
    """
    typed = phone.strip()
    digits = re.sub(r"\D", "", typed)
    if len(typed) > TYPED_MAX or not _TYPED.fullmatch(typed) or len(digits) < _DIGITS_MIN:
        raise _not_a_phone(field)
    if not typed.startswith("+"):
        return digits
    # Imported here: its tables cost 40 ms, and a process without phone numbers never needs them.
    import phonenumbers  # noqa: PLC0415

    try:
        number = phonenumbers.parse(typed, None)
    except phonenumbers.NumberParseException:
        raise _not_a_phone(field) from None
    if not phonenumbers.is_possible_number(number):
        raise _not_a_phone(field)
    return phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)


def _not_a_phone(field: str) -> Invalid:
    return Invalid(
        "invalid_phone",
        f"{field} is not a phone number",
        remedy="write it with its country code, as +33612345678",
        field=field,
    )
