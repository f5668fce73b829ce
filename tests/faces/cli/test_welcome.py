"""What a starting process prints is so."""

from msgspec.structs import replace

from tocsin.faces.cli.ports import DevReady
from tocsin.faces.cli.welcome import print_welcome

READY = DevReady(
    url="http://127.0.0.1:3400",
    project="dev",
    api_key="key",
    operator_key="other",
    database_url="postgresql://h/n",
    data_dir="tocsin-data-2",
    psql=None,
    reused=False,
    email="log",
    version="0",
)


def test_mail_that_is_not_sent_is_said_to_be_so(capsys) -> None:
    print_welcome(READY)
    shown = capsys.readouterr().out
    print_welcome(replace(READY, email="smtp"))

    assert "not sent: one line in the log" in shown
    assert "not sent" not in capsys.readouterr().out


def test_another_data_directory_than_the_usual_one_is_explained(capsys) -> None:
    print_welcome(READY)
    usual = capsys.readouterr().out
    print_welcome(replace(READY, data_note="tocsin-data is in use by another `tocsin dev`"))
    shown = capsys.readouterr().out

    assert "--data" not in usual
    assert "tocsin-data-2 (new)" in shown
    assert "because tocsin-data is in use by another `tocsin dev`; --data chooses" in shown
