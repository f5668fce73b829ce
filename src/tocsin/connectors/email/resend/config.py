"""A Resend account's settings, refused where no call could be made with them."""

import re

from msgspec import Struct

from tocsin.connectors.base_url import check_base_url
from tocsin.domain.errors import Invalid

REQUEST_TIMEOUT_MAX_S = 30.0

_KEY = re.compile(r"[\x21-\x7e]{1,512}")


class ResendConfig(Struct, frozen=True):
    """An account: its key (`re_…`), where its API is, and the time one call may take, in seconds."""

    api_key: str
    base_url: str = "https://api.resend.com"
    timeout_s: float = REQUEST_TIMEOUT_MAX_S

    def __repr__(self) -> str:
        return f"ResendConfig(api_key='***', base_url={self.base_url!r})"


def check(config: ResendConfig) -> ResendConfig:
    """The same, its base URL in one form; Invalid for what no call could be made with, never quoting the key."""
    if not _KEY.fullmatch(config.api_key):
        raise Invalid(
            "invalid_api_key",
            "the Resend API key is empty, or holds a space, a line break or a non-ASCII character",
            remedy="Copy it again from resend.com/api-keys, without what stands around it.",
            field="api_key",
        )
    if not 0 < config.timeout_s <= REQUEST_TIMEOUT_MAX_S:
        raise Invalid(
            "invalid_timeout",
            f"timeout_s is not within 0 and {REQUEST_TIMEOUT_MAX_S:.0f} seconds",
            remedy="Leave it out, or choose a time within the limit.",
            field="timeout_s",
        )
    base_url = check_base_url(config.base_url, "base_url")
    return ResendConfig(config.api_key, base_url, config.timeout_s)
