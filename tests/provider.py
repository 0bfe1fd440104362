"""A small OpenID provider over HTTP, built with authlib: it checks clients, addresses, codes and PKCE.

`twist` makes it hostile: it changes an ID token before that is signed, or after.
"""

import base64
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from authlib.common.security import generate_token
from authlib.oauth2.rfc6749 import AuthorizationServer, OAuth2Request, scope_to_list
from authlib.oauth2.rfc6749.grants import AuthorizationCodeGrant
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload
from authlib.oauth2.rfc6750 import BearerTokenGenerator
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oidc.core.grants import OpenIDCode
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, RSAKey

CLIENT, SECRET = "clarinet-tests", "a+secret/with:signs %"
Claims = dict[str, Any]
FIRST_KEY = RSAKey.generate_key(2048, {"use": "sig"}, auto_kid=True)


@dataclass
class Code:
    """What an authorisation code stands for, with the methods that authlib asks for."""

    code: str
    redirect_uri: str
    scope: str
    nonce: str
    code_challenge: str
    code_challenge_method: str
    user: Claims
    auth_time: int = field(default_factory=lambda: int(time.time()))

    def get_redirect_uri(self) -> str:
        return self.redirect_uri

    def get_scope(self) -> str:
        return self.scope


class Client:
    """The one client that is registered."""

    def __init__(self, provider: "Provider") -> None:
        self.provider = provider

    def get_client_id(self) -> str:
        return CLIENT

    def get_default_redirect_uri(self) -> str:
        return self.provider.redirect_uri

    def check_redirect_uri(self, given: str) -> bool:
        return given == self.provider.redirect_uri

    def get_allowed_scope(self, scope: str) -> str:
        return " ".join(each for each in scope_to_list(scope) if each in {"openid", "email", "profile"})

    def check_client_secret(self, given: str) -> bool:
        is_basic = self.provider.auth_method == "client_secret_basic"
        return (unquote(given) if is_basic else given) == self.provider.secret  # RFC 6749 2.3.1

    def check_endpoint_auth_method(self, method: str, _endpoint: str) -> bool:
        return method == self.provider.auth_method

    def check_response_type(self, given: str) -> bool:
        return given == "code"

    def check_grant_type(self, given: str) -> bool:
        return given == "authorization_code"


class Provider:
    """The provider, in threads of its own, with one person signed in: `person`."""

    def __init__(self, redirect_uri: str, *, host: str = "127.0.0.1") -> None:
        self.redirect_uri, self.host = redirect_uri, host
        self.secret, self.auth_method = SECRET, "client_secret_post"
        self.person: Claims = {
            "sub": "ada-1",
            "email": "ada@example.org",
            "email_verified": True,
            "name": "Ada Lovelace",
        }
        self.in_userinfo: Claims = {}  # and not in the token
        self.userinfo_sub = ""
        self.says: Claims = {}  # further facts of the discovery document
        self.signs_with: RSAKey | ECKey = FIRST_KEY
        self.algorithm = "RS256"
        self.shows: list[RSAKey | ECKey] = [self.signs_with]
        self.twist: Callable[[Claims], Claims] = lambda claims: claims
        self.forge: Callable[[str], str] = lambda token: token
        self.refuses: Callable[[Claims], Claims] | None = None  # what it says to whoever redeems a code
        self.with_auth_time = True
        self.delay_s = 0.0
        self.asked: list[str] = []  # paths
        self.last: dict[str, str] = {}  # parameters of the last question who somebody is
        self.codes: dict[str, Code] = {}
        self.server = _server(self)
        self.http: ThreadingHTTPServer | None = None
        self.port = 0
        self.start()

    def start(self) -> None:
        """Listen, at the same port as before."""
        handler = type("Handler", (_Handler,), {"provider": self})
        self.http = ThreadingHTTPServer(("127.0.0.1", self.port), handler)
        self.port = self.http.server_port
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        """Be away."""
        if self.http:
            self.http.shutdown()
            self.http.server_close()
            self.http = None

    @property
    def issuer(self) -> str:
        return f"http://{self.host}:{self.port}"

    def rotate(self, *, keep: bool = True) -> None:
        """Sign with a new key from now on, of another kind."""
        self.signs_with = ECKey.generate_key("P-256", {"use": "sig"}, auto_kid=True)
        self.algorithm = "ES256"
        self.shows = [self.signs_with, *(self.shows if keep else [])]

    def discovery(self) -> Claims:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "jwks_uri": f"{self.issuer}/keys",
            "end_session_endpoint": f"{self.issuer}/end",
            "id_token_signing_alg_values_supported": ["RS256", "ES256", "none", "HS256"],
            "token_endpoint_auth_methods_supported": [self.auth_method],
        } | self.says

    def id_token(self, code: Code) -> str:
        """What is signed, unless a test wants otherwise."""
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": code.nonce}
        claims |= {"auth_time": code.auth_time} if self.with_auth_time else {}
        claims = self.twist(claims | code.user)
        header = {"alg": self.algorithm, "kid": self.signs_with.kid}
        return self.forge(jwt.encode(header, claims, self.signs_with, algorithms=[self.algorithm]))


def unsigned(token: str) -> str:
    """The same claims with no signature at all."""
    head = base64.urlsafe_b64encode(json.dumps({"alg": "none"}).encode()).rstrip(b"=").decode()
    return f"{head}.{token.split('.')[1]}."


def _server(provider: Provider) -> AuthorizationServer:
    class Grant(AuthorizationCodeGrant):  # type: ignore[misc]  # authlib ships no types
        TOKEN_ENDPOINT_AUTH_METHODS = ["client_secret_post", "client_secret_basic", "none"]  # noqa: RUF012

        def save_authorization_code(self, code: str, request: Any) -> None:
            said = request.payload.data
            provider.codes[code] = Code(
                code,
                said.get("redirect_uri", ""),
                request.payload.scope,
                said.get("nonce", ""),
                said.get("code_challenge", ""),
                said.get("code_challenge_method", ""),
                request.user,
            )

        def query_authorization_code(self, code: str, _client: Client) -> Code | None:
            return provider.codes.get(code)

        def delete_authorization_code(self, code: Code) -> None:
            provider.codes.pop(code.code, None)

        def authenticate_user(self, code: Code) -> Claims:
            return code.user

    class Identity(OpenIDCode):  # type: ignore[misc]
        def exists_nonce(self, nonce: str, _request: Any) -> bool:
            return any(code.nonce == nonce for code in provider.codes.values())

        def encode_id_token(self, _token: Claims, request: Any) -> str:
            return provider.id_token(request.authorization_code)

    class Server(AuthorizationServer):  # type: ignore[misc]
        def query_client(self, client_id: str) -> Client | None:
            return Client(provider) if client_id == CLIENT else None

        def save_token(self, token: Claims, request: Any) -> None:
            pass

        def send_signal(self, *_: Any, **__: Any) -> None:
            pass

        def create_oauth2_request(self, request: OAuth2Request) -> OAuth2Request:
            return request

        def handle_response(self, status: int, body: Any, headers: Any) -> Any:
            return status, body, headers

    server = Server(scopes_supported=["openid", "email", "profile"])
    tokens = BearerTokenGenerator(lambda **_: generate_token(42))
    server.register_token_generator("default", tokens)
    server.register_grant(Grant, [CodeChallenge(required=True), Identity(require_nonce=True)])
    return server


class _Handler(BaseHTTPRequestHandler):
    provider: Provider

    def do_GET(self) -> None:
        path, query = urlsplit(self.path).path, dict(parse_qsl(urlsplit(self.path).query))
        self.provider.asked.append(path)
        time.sleep(self.provider.delay_s)
        if path == "/.well-known/openid-configuration":
            self._json(self.provider.discovery())
        elif path == "/keys":
            self._json(KeySet(list(self.provider.shows)).as_dict(private=False))
        elif path == "/userinfo":
            sub = self.provider.userinfo_sub or self.provider.person["sub"]
            self._json({"sub": sub} | self.provider.in_userinfo)
        elif path == "/authorize":
            self.provider.last = query
            request = self._request("GET", f"?{urlencode(query)}", query)
            grant = self.provider.server.get_consent_grant(request, end_user=self.provider.person)
            self._send(
                *self.provider.server.create_authorization_response(request, self.provider.person, grant)
            )
        else:
            self._json({}, 404)

    def do_POST(self) -> None:
        self.provider.asked.append(self.path)
        body = dict(parse_qsl(self.rfile.read(int(self.headers.get("content-length", 0))).decode()))
        if self.provider.refuses:
            self._json(self.provider.refuses(body), 400)
            return
        self._send(*self.provider.server.create_token_response(self._request("POST", "", body)))

    def _request(self, method: str, query: str, said: dict[str, str]) -> OAuth2Request:
        # Its address is only looked at; over plain HTTP authlib would refuse it.
        headers = dict(self.headers.items())
        request = OAuth2Request(
            method, f"https://provider.test{self.path.partition('?')[0]}{query}", None, headers
        )
        request.payload = BasicOAuth2Payload(said)
        request._body = said
        return request

    def _json(self, body: Any, status: int = 200) -> None:
        self._send(status, body, [("Content-Type", "application/json")])

    def _send(self, status: int, body: Any, headers: Any) -> None:
        sent = json.dumps(body).encode() if isinstance(body, dict) else str(body).encode()
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *_: Any) -> None:
        pass
