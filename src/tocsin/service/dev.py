"""Dev: the settings under which `tocsin dev` runs, for itself and for a doctor that looks at it."""

from msgspec.structs import replace

from tocsin.settings import Settings


def completed(settings: Settings, url: str) -> Settings:
    """What nobody configured and what works on one machine: mail is logged, links lead to `url`."""
    email = settings.connectors.email
    if email.provider in (None, "none"):
        email = replace(email, provider="log")
    connectors = replace(settings.connectors, email=email)
    public_url = settings.server.public_url or url
    return replace(
        settings, connectors=connectors, server=replace(settings.server, public_url=public_url)
    )
