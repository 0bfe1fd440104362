"""Sending mail, where the settings name a server. Nothing waits for it, and nothing depends on it."""

import smtplib
import ssl
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from urllib.parse import unquote, urlsplit

import structlog

from app.settings import Settings

TIMEOUT_S = 20
PORTS = {"smtp": 25, "smtp+starttls": 587, "smtps": 465}

log = structlog.get_logger()


def send_mail(settings: Settings, *, to: str, subject: str, text: str) -> bool:
    """Send one message; False where that failed, which the log tells. Takes seconds: nobody waits for it."""
    message = EmailMessage()
    message["From"] = settings.mail_from
    message["To"] = to
    message["Subject"] = subject
    message["Date"] = formatdate(usegmt=True)
    message["Message-ID"] = make_msgid(domain=settings.mail_from.rpartition("@")[2])
    message["Auto-Submitted"] = "auto-generated"  # so that nobody's absence answers
    message.set_content(text)
    try:
        with _connection(settings) as server:
            server.send_message(message)
    except (OSError, smtplib.SMTPException) as error:
        log.warning("mail.failed", error=f"{type(error).__name__}: {error}"[:200])
        return False
    return True


def _connection(settings: Settings) -> smtplib.SMTP:
    url = urlsplit(settings.smtp_url.get_secret_value())
    host, port = url.hostname or "", url.port or PORTS[url.scheme]
    if url.scheme == "smtps":
        server: smtplib.SMTP = smtplib.SMTP_SSL(
            host, port, timeout=TIMEOUT_S, context=ssl.create_default_context()
        )
    else:
        server = smtplib.SMTP(host, port, timeout=TIMEOUT_S)
    try:
        if url.scheme == "smtp+starttls":
            server.starttls(context=ssl.create_default_context())  # raises where the server has none
        if url.username is not None:
            server.login(unquote(url.username), unquote(url.password or ""))
    except BaseException:
        server.close()
        raise
    return server
