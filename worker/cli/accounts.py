"""`clarinet user` and `clarinet token`: accounts, straight in the database of this installation."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

    from app.settings import Settings

users = typer.Typer(no_args_is_help=True, help="People with an account.")
tokens = typer.Typer(no_args_is_help=True, help="Bearer tokens of programs.")
AsJson = Annotated[bool, typer.Option("--json", help="Print one line of JSON.")]


@contextmanager
def changes(settings: "Settings") -> "Iterator[Session]":
    """One transaction in a database whose schema is current.

    Raises:
        AppError: it is not.
    """
    from app.db import connect, unit_of_work
    from app.errors import AppError
    from app.jobs import publisher
    from app.migrate import fits

    database = connect(settings.sqlalchemy_url)
    try:
        with unit_of_work(database.write, publisher(settings)) as session:
            if not fits(session.connection()):
                raise AppError("The database's schema is not current. Run first: clarinet db upgrade")
            yield session
    finally:
        database.dispose()


@users.command("add")
def add_user(
    email: Annotated[str, typer.Argument(help="Address to sign in with; nothing is sent to it.")],
    name: Annotated[str, typer.Option(help="What others see.")] = "",
    admin: Annotated[bool, typer.Option("--admin", help="May do everything; else only answers.")] = False,
    reviewer: Annotated[
        bool, typer.Option("--reviewer", help="Settles disagreements and downloads labels.")
    ] = False,
    password_stdin: Annotated[
        bool, typer.Option("--password-stdin", help="Read the password from standard input.")
    ] = False,
    link: Annotated[
        bool, typer.Option("--link", help="Print a one-time link; the person chooses a password there.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make an account. Asks for a password; without a terminal to ask on, prints a link for this address."""
    from pydantic import TypeAdapter

    from app.accounts import service
    from app.accounts.models import Role
    from app.accounts.schemas import Email
    from app.clock import utc_now
    from app.schemas import Name
    from app.settings import Settings

    email = TypeAdapter(Email).validate_python(email.strip())
    name = TypeAdapter(Name).validate_python(name.strip() or email.partition("@")[0])
    settings = Settings()
    role = Role.ADMIN if admin else Role.REVIEWER if reviewer else Role.ANNOTATOR
    password: str | None = None
    if password_stdin:
        password = sys.stdin.readline().rstrip("\r\n")
    elif not link and sys.stdin.isatty():
        password = typer.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    with changes(settings) as session:
        if password is None:
            _, secret = service.invite(session, role=role, note=name, email=email, by=None, now=utc_now())
            found = {"url": service.invitation_url(settings.public_url, secret)}
            words = f"Open this link within seven days to choose a password:\n{found['url']}"
        else:
            user = service.create_user(
                session, email=email, name=name, role=role, password=password, now=utc_now()
            )
            found = {"id": str(user.id), "email": user.email}
            words = f"{name} can sign in as {email}."
    typer.echo(json.dumps(found) if as_json else words)


@users.command("reset")
def reset_user(
    email: Annotated[str, typer.Argument(help="Whose password is forgotten.")],
    second_factor: Annotated[
        bool, typer.Option("--second-factor", help="Take the second factor away as well: the phone is lost.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print a one-time link by which somebody who has an account chooses another password."""
    from app.accounts import service
    from app.clock import utc_now
    from app.settings import Settings

    settings = Settings()
    with changes(settings) as session:
        user = service.user_by_email(session, email)
        _, secret = service.make_password_link(session, user, by=None, now=utc_now())
        if second_factor:
            service.turn_off_second_factor(session, user.id, by=None)
        found = {"url": service.password_url(settings.public_url, secret)}
    words = f"Open this link within a day to choose another password:\n{found['url']}"
    typer.echo(json.dumps(found) if as_json else words)


@users.command("rename")
def rename_user(
    email: Annotated[str, typer.Argument(help="Whose name.")],
    name: Annotated[str, typer.Argument(help="What others see from now on.")],
    as_json: AsJson = False,
) -> None:
    """Call somebody otherwise."""
    from pydantic import TypeAdapter

    from app.accounts import service
    from app.schemas import Name
    from app.settings import Settings

    name = TypeAdapter(Name).validate_python(name.strip())
    with changes(Settings()) as session:
        user = service.rename(session, service.user_by_email(session, email).id, name, by=None)
        found = {"id": str(user.id), "name": user.name}
    typer.echo(json.dumps(found) if as_json else f"{email} is called {name} now.")


@users.command("role")
def change_role(
    email: Annotated[str, typer.Argument(help="Whose role.")],
    role: Annotated[Literal["annotator", "reviewer", "admin"], typer.Argument(help="What they may do.")],
    as_json: AsJson = False,
) -> None:
    """Give somebody another role. They sign in anew, and their tokens end."""
    from app.accounts import service
    from app.accounts.models import Role
    from app.clock import utc_now
    from app.settings import Settings

    with changes(Settings()) as session:
        user = service.user_by_email(session, email)
        service.set_role(session, user.id, Role(role), by=None, now=utc_now())
        found = {"id": str(user.id), "role": role}
    typer.echo(json.dumps(found) if as_json else f"{email} is {role} now, and signs in anew.")


@users.command("unlink")
def unlink_user(
    email: Annotated[str, typer.Argument(help="Whose account.")],
    as_json: AsJson = False,
) -> None:
    """Take away the link to somebody's account at the organisation. They use a password, or link anew."""
    from app.accounts import service
    from app.accounts.organisation.service import unlink
    from app.settings import Settings

    settings = Settings()
    with changes(settings) as session:
        user = service.user_by_email(session, email)
        found = {"id": str(user.id), "was_linked": unlink(session, user, settings, by=None)}
    was = "is linked no more" if found["was_linked"] else "was not linked"
    typer.echo(json.dumps(found) if as_json else f"{email} {was}.")


@users.command("erase")
def erase_user(
    email: Annotated[str, typer.Argument(help="Whom to erase.")],
    name: Annotated[
        str, typer.Option(help="Their name, as a check against a slip; else it is asked for.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Erase what identifies somebody. Their answers stay, under a pseudonym. It cannot be undone."""
    from app.accounts import service
    from app.clock import utc_now
    from app.members.service import erase_person
    from app.settings import Settings

    name = name or typer.prompt(f"Type the name of {email} to erase them", err=True)
    with changes(Settings()) as session:
        user = service.user_by_email(session, email)
        erased = erase_person(session, user.id, name=name, by=None, now=utc_now())
        found = {"id": str(erased.id), "pseudonym": erased.name}
    typer.echo(json.dumps(found) if as_json else f"Erased. The answers stay under “{found['pseudonym']}”.")


@tokens.command("add")
def add_token(
    email: Annotated[str, typer.Argument(help="Whose token: the program may do what this person may.")],
    name: Annotated[str, typer.Argument(help="What it is for.")],
    scope: Annotated[
        Literal["read", "annotate", "manage"], typer.Option(help="What it may do of what that person may.")
    ] = "manage",
    days: Annotated[int, typer.Option(min=1, max=365, help="For how long it works.")] = 90,
    as_json: AsJson = False,
) -> None:
    """Make a bearer token and print it, this once."""
    from app.accounts import service
    from app.accounts.models import Scope
    from app.accounts.schemas import TokenCreate
    from app.clock import utc_now
    from app.settings import Settings

    given = TokenCreate(name=name, scope=Scope(scope), days=days)
    with changes(Settings()) as session:
        user = service.user_by_email(session, email)
        token, secret = service.create_token(
            session, user, given.name, now=utc_now(), scope=given.scope, life=given.life
        )
        found = {"id": str(token.id), "name": given.name, "token": secret}
    typer.echo(json.dumps(found) if as_json else secret)
