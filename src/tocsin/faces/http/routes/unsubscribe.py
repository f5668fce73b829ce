"""/u/{token}: the page behind a message's unsubscribe link, and one-click (RFC 8058)."""

from html import escape
from string import Template
from typing import Final

from litestar import MediaType, Response, Router, get, post
from litestar.openapi import ResponseSpec

from tocsin.domain.errors import NotFound
from tocsin.faces.http.given import Given, PathToken
from tocsin.service import unsubscribe

_HEADERS: Final = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; "
    "form-action 'self'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-robots-tag": "noindex",
}
_PAGE: Final = Template("""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>$title</title>
<style>
  :root { color-scheme: light dark }
  body { font: 1rem/1.5 system-ui, sans-serif; max-width: 32rem; margin: 15vh auto; padding: 0 1rem }
  button { font: inherit; padding: .6rem 1.2rem; cursor: pointer }
</style>
<h1>$title</h1>
<p>$text</p>
$form
</html>
""")
_FORM: Final = '<form method="post"><button>Unsubscribe</button></form>'


_ANSWERS: Final = {
    404: ResponseSpec(
        str, description="No such link.", media_type=MediaType.HTML, generate_examples=False
    )
}


def _page(title: str, text: str, form: str = "", status: int = 200) -> Response[str]:
    page = _PAGE.substitute(title=escape(title), text=escape(text), form=form)
    return Response(page, media_type=MediaType.HTML, status_code=status, headers=dict(_HEADERS))


def _unknown() -> Response[str]:
    return _page(
        "Unknown link",
        "This link is not valid or has expired. Use the link of a newer message.",
        status=404,
    )


@get("/{token:str}", media_type=MediaType.HTML, responses=_ANSWERS)
async def show_unsubscribe(app: Given, token: PathToken) -> Response[str]:
    """A page with a button; opening it changes nothing, so a mail scanner unsubscribes nobody."""
    try:
        address = unsubscribe.described(app, token)
    except NotFound:
        return _unknown()
    return _page("Unsubscribe", f"Stop marketing messages to {address}?", _FORM)


@post("/{token:str}", media_type=MediaType.HTML, status_code=200, responses=_ANSWERS)
async def confirm_unsubscribe(app: Given, token: PathToken) -> Response[str]:
    """No more marketing to this address; repeating it is harmless."""
    try:
        address = await unsubscribe.confirm(app, token)
    except NotFound:
        return _unknown()
    return _page("Unsubscribed", f"{address} gets no more marketing messages from this sender.")


router = Router("/u", route_handlers=[show_unsubscribe, confirm_unsubscribe], tags=["Unsubscribe"])
