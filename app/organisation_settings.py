"""Settings of signing in with an organisation's account; `app.settings` has them among its own."""

from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, model_validator

from app.said_settings import SaidSettings, parts_of

BACK = "/sign-in/organisation/back"  # where the provider sends people back to


class OrganisationSettings(SaidSettings):
    """Off unless an issuer is named."""

    oidc_issuer: str = Field(
        default="", description="issuer of the OpenID provider by which people may sign in; empty: none"
    )
    oidc_name: str = Field(
        default="", max_length=60, description="what people call it, on the button; empty: the issuer's host"
    )
    oidc_client_id: str = Field(default="", description="what the provider calls this installation")
    oidc_client_secret: SecretStr = Field(
        default=SecretStr(""),
        description="the provider's secret for it; empty: a public client, with PKCE alone",
    )
    oidc_scopes: str = Field(
        default="openid email profile", description="scopes that are asked for, openid among them"
    )
    oidc_groups_claim: str = Field(
        default="groups", description="claim that holds a person's groups; a path with dots leads into it"
    )
    oidc_roles: dict[str, Literal["annotator", "reviewer", "admin"]] = Field(
        default={},
        description="role by group, as JSON, given anew at each sign-in; none: admins give roles here",
    )
    oidc_allowed_groups: tuple[str, ...] = Field(
        default=(), description="groups of which people must be in one, as a JSON list; none: anybody"
    )
    oidc_allowed_domains: tuple[str, ...] = Field(
        default=(), description="domains of verified addresses that may come, as a JSON list; none: any"
    )
    oidc_make_accounts: bool = Field(
        default=False, description="make an account at the first sign-in of whoever may come"
    )
    oidc_link_by_email: bool = Field(
        default=False,
        description="give whoever has the verified address of an account that account; its password ends",
    )
    oidc_email_trusted: bool = Field(
        default=False, description="addresses of which the provider does not say so count as verified"
    )
    password_sign_in: bool = Field(
        default=True, description="people may sign in with a password; off only with a provider"
    )

    @model_validator(mode="after")
    def refuse_a_provider_that_cannot_work(self) -> Self:
        """What is missing is better told at the start than at the first sign-in."""
        if not self.oidc_issuer:
            if not self.password_sign_in:
                raise ValueError("CLARINET_PASSWORD_SIGN_IN is off, so CLARINET_OIDC_ISSUER must be set")
            return self
        parts = parts_of(self.oidc_issuer, "CLARINET_OIDC_ISSUER")
        schemes = {"https"} if getattr(self, "environment", "") == "production" else {"https", "http"}
        if parts.scheme not in schemes or not parts.hostname or parts.query or parts.fragment:
            raise ValueError("CLARINET_OIDC_ISSUER is the provider's https address, without a query")
        if not self.oidc_client_id:
            raise ValueError("CLARINET_OIDC_CLIENT_ID must be set, because CLARINET_OIDC_ISSUER is")
        if "openid" not in self.oidc_scopes.split():
            raise ValueError("CLARINET_OIDC_SCOPES must have openid among them")
        return self

    @property
    def organisation(self) -> str:
        """What people call the provider; "" where there is none."""
        return self.oidc_name or urlsplit(self.oidc_issuer).hostname or ""

    @property
    def needs_groups(self) -> bool:
        """Whether anything is decided by groups."""
        return bool(self.oidc_roles or self.oidc_allowed_groups)


def back_url(public_url: str) -> str:
    """The address to register at the provider: where people reach us, whatever host a request named."""
    return public_url.rstrip("/") + BACK
