"""`tocsin demo`: the whole product on this machine, from outside: processes, HTTP, SMTP, live events."""
