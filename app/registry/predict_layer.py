"""One picture after the other by a program that waits for each answer: served past the framework.

The framework sends a request through its dependencies, some of them in threads, and one with a small picture
costs more there than its prediction. Here who calls and which model is meant are found in one thread and one
transaction. What the request means is said by the same functions as there.

Only requests with a token and a small body of known length are served here; the others are passed on.
"""

from uuid import UUID

from anyio import to_thread
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from app.deps import ROUTE, bearer_of, identify_in, require_access
from app.errors import AppError
from app.hardening import SMALL_BODY_BYTES
from app.problems import malformed, on_app_error, on_http_error
from app.registry.asking import say
from app.registry.pictures_sent import receive_pictures
from app.registry.predict_api import PREDICT, answered, predict_pictures
from app.registry.predicting import Recent
from app.registry.predictor import Served

JSON = "application/json"


class PredictLayer:
    """Serves POST {prefix}/models/{model_id}/predict where it can; everything else goes to the framework."""

    def __init__(self, app: ASGIApp, *, prefix: str) -> None:
        self.app = app
        self.path = prefix + PREDICT
        self.recent = Recent()
        self.before, _, self.after = self.path.partition("{model_id}")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or pass it on."""
        model_id = self._find(scope)
        if model_id is None:
            await self.app(scope, receive, send)
            return
        request = Request(scope, receive)
        setattr(request.state, ROUTE, self.path)
        try:
            response = await self._serve(request, model_id)
        except AppError as error:
            response = on_app_error(request, error)
        except RequestValidationError as error:
            response = malformed(request, error, None)
        except HTTPException as error:
            response = on_http_error(request, error)
        await response(scope, receive, send)

    def _find(self, scope: Scope) -> UUID | None:
        path: str = scope.get("path", "")
        if scope["type"] != "http" or scope["method"] != "POST" or not path.startswith(self.before):
            return None
        if not path.endswith(self.after) or not bearer_of(Request(scope)):
            return None
        length = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
        if not length.isdigit() or int(length[:12]) > SMALL_BODY_BYTES:
            return None
        try:
            return UUID(path[len(self.before) : -len(self.after)])
        except ValueError:
            return None

    async def _serve(self, request: Request, model_id: UUID) -> Response:
        found = await to_thread.run_sync(self._found, request, model_id)
        pictures = await receive_pictures(request)
        if isinstance(found, AppError):
            raise found  # only now: as by the framework, which first reads what was sent
        said = answered(request, found, await say(request, found, pictures))
        return Response(said.model_dump_json(), media_type=JSON)

    def _found(self, request: Request, model_id: UUID) -> Served | AppError:
        """Who calls, whether they may, and what is asked."""
        state = request.app.state
        with state.database.read.begin() as session:
            identify_in(session, request)
            require_access(request, predict_pictures)
            try:
                return self.recent.served(session, state.storage, model_id, by=request.state.user)
            except AppError as error:
                return error
