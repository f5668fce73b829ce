"""A script: a content's texts compiled, its own vars already in; what is left is each person's."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from tocsin.content.placeholders import Compiled, as_html, as_text, bind, compile_text
from tocsin.domain.content import Content


class Words(Struct, frozen=True):
    """The texts to fill: the template's, or the content's own."""

    subject: str | None
    body: str | None
    body_html: str | None


class Script(Struct, frozen=True):
    """One message to be said to many; None where there is no such text. personal: it names anything."""

    content: Content
    subject: Compiled | None
    body: Compiled | None
    body_html: Compiled | None
    url: Compiled | None
    personal: bool


def script_of(content: Content, words: Words) -> Script:
    """Compile and bind. A send's vars win over the person's fields, so they can be put in first."""
    own = content.vars or {}
    subject = _bound(words.subject, own)
    body = _bound(words.body, own)
    body_html = None
    if words.body_html is not None:
        body_html = bind(compile_text(words.body_html), own, as_html)
    url = _bound(content.url, own)
    texts = (subject, body, body_html, url)
    personal = any(text is not None and len(text) > 1 for text in texts)
    return Script(content, subject, body, body_html, url, personal)


def _bound(text: str | None, own: Mapping[str, Any]) -> Compiled | None:
    return None if text is None else bind(compile_text(text), own, as_text)
