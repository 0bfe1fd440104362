"""The provider of an installation that has one: only then is what talks to it loaded."""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from app.errors import AppError
from app.settings import Settings

if TYPE_CHECKING:
    from app.accounts.organisation.provider import Provider


def provider_of(settings: Settings) -> "Provider | None":
    """What talks to the provider of the settings; None where they name none.

    Raises:
        AppError: what it needs is not installed.
    """
    if not settings.oidc_issuer:
        return None
    # An extra, which only the web process of such an installation has.
    if find_spec("authlib") is None:
        raise AppError("CLARINET_OIDC_ISSUER is set. Install what it needs: pip install clarinet[oidc]")
    from app.accounts.organisation.provider import Provider  # noqa: PLC0415

    return Provider(settings)
