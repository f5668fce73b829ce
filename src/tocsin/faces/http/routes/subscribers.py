"""/v1/subscribers: the people of a project, and their preferences."""

from typing import Annotated

from litestar import Router, delete, get, post, put
from litestar.params import JSONBody, QueryParameter

from tocsin.domain.request import SubscriberIn
from tocsin.faces.http.given import PROJECT_KEY, Given, Offset, PathId, Project, Words
from tocsin.service import preferences, subscribers

Limit = Annotated[int, QueryParameter(ge=1, le=200)]


@post(status_code=200)
async def save_subscriber(
    app: Given, who: Project, data: JSONBody[SubscriberIn]
) -> subscribers.SubscriberSaved:
    """Store a person. Of one already there, what is left out keeps its value."""
    return await subscribers.upsert(app, who, data)


@get()
async def list_subscribers(
    app: Given, who: Project, limit: Limit = 50, offset: Offset = 0, q: Words = None
) -> subscribers.SubscriberPage:
    """People by id; `q` is looked for in id, email and names."""
    return await subscribers.page(app, who, q=q, limit=limit, offset=offset)


@get("/{subscriber_id:str}")
async def read_subscriber(
    app: Given, who: Project, subscriber_id: PathId
) -> subscribers.SubscriberOut:
    """One person."""
    return await subscribers.read(app, who, subscriber_id)


@delete("/{subscriber_id:str}", status_code=200)
async def delete_subscriber(app: Given, who: Project, subscriber_id: PathId) -> subscribers.Done:
    """Forget a person: their addresses, preferences, inbox and stream tickets."""
    return await subscribers.delete(app, who, subscriber_id)


@get("/{subscriber_id:str}/preferences")
async def read_preferences(
    app: Given, who: Project, subscriber_id: PathId
) -> preferences.PreferencesAnswer:
    """What a person chose."""
    return await preferences.of_subscriber(app, who, subscriber_id)


@put("/{subscriber_id:str}/preferences")
async def change_preferences(
    app: Given, who: Project, subscriber_id: PathId, data: JSONBody[preferences.PreferencesIn]
) -> preferences.PreferencesSaved:
    """Store these choices; others stay as they are."""
    return await preferences.change(app, who, subscriber_id, data)


router = Router(
    "/v1/subscribers",
    route_handlers=[
        save_subscriber,
        list_subscribers,
        read_subscriber,
        delete_subscriber,
        read_preferences,
        change_preferences,
    ],
    security=PROJECT_KEY,
    tags=["Subscribers"],
)
