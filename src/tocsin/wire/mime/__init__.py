"""The MIME writer: an EmailMessage in, the bytes of the mail out; and what its headers may say."""

from tocsin.wire.mime.refusals import check_content_id, check_content_type, check_headers
from tocsin.wire.mime.writer import JOB_HEADER, message_id, needs_smtputf8, parse_listed, write

__all__ = [
    "JOB_HEADER",
    "check_content_id",
    "check_content_type",
    "check_headers",
    "message_id",
    "needs_smtputf8",
    "parse_listed",
    "write",
]
