"""Welcome: what `tocsin dev` and `tocsin serve` print once they run."""

from shlex import quote

import msgspec
from rich.text import Text

from tocsin.faces.cli.output import console, print_facts
from tocsin.faces.cli.ports import DevReady, ServeReady

_FIRST_SEND = {
    "channel": "email",
    "to": "you@example.com",
    "subject": "Hello",
    "body": "It works, {{name}}.",
    "vars": {"name": "Ada"},
}
_NOT_SENT = (
    "not sent: one line in the log below for each call; SMTP_HOST or RESEND_API_KEY, and EMAIL_FROM, "
    "send it"
)


def curl(ready: DevReady) -> str:
    """A first send, ready to paste into a shell; empty when the key is not known."""
    if ready.api_key is None:
        return ""
    said = msgspec.json.encode(_FIRST_SEND).decode()
    return (
        f"curl -sS {quote(ready.url + '/v1/send')} -H {quote('X-Api-Key: ' + ready.api_key)} "
        f"-H 'Content-Type: application/json' -d {quote(said)}"
    )


def print_welcome(ready: DevReady) -> None:
    """Where everything is, the keys, and a request to try."""
    out = console()
    lost = f"shown before; `tocsin dev --new-key` makes a new one for '{ready.project}'"
    lost_operator = "shown before; set ADMIN_API_KEY to use one of your own"
    out.print(f"\n[bold]Tocsin {ready.version}[/] runs. Ctrl-C stops it.\n")
    rows: list[tuple[str, str | Text]] = [
        ("API", ready.url),
        ("Docs", f"{ready.url}/docs"),
        ("Project", ready.project),
        ("Project key", ready.api_key or Text(lost, style="yellow")),
        ("Operator key", ready.operator_key or Text(lost_operator, style="yellow")),
        ("Email", _NOT_SENT if ready.email == "log" else ready.email),
    ]
    if ready.data_dir is not None:
        state = "from the last start" if ready.reused else "new"
        rows.append(("Data", f"{ready.data_dir} ({state})"))
    if ready.data_note is not None:
        note = f"there because {ready.data_note}; --data chooses another place"
        rows.append(("", Text(note, style="yellow")))
    if ready.psql is not None:
        rows.append(("psql", ready.psql))
    print_facts(out, rows)
    if line := curl(ready):
        out.print("\nSend something:\n")
        # Not through the console: it must arrive in a shell exactly as it is.
        out.file.write(line + "\n\n")
    out.file.flush()


def print_operator_key(ready: ServeReady) -> None:
    """The operator's key, by the one process that made it, the one time it is known."""
    if ready.operator_key is None:
        return
    out = console()
    out.print("\n[bold]Operator key[/] (made now, shown this once; store it):")
    out.file.write(f"{ready.operator_key}\n\n")
    out.file.flush()
