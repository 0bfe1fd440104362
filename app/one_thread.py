"""Routes that hundreds of people call at once: each request is served in one thread, in one transaction.

Otherwise the event loop passes a request from dependency to dependency, some of them in threads, and each
change of threads costs about as much as what the thread has to do. Here the whole request, from finding out
who calls to the bytes of the response, is one function; on SQLite those that arrived meanwhile are one
transaction as well.

What is out of the ordinary goes the framework's way, which words the errors.
"""

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, get_type_hints
from uuid import UUID

from fastapi import Request, Response, status
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from sqlalchemy.orm import Session
from starlette.requests import ClientDisconnect

from app.accounts.errors import BadCsrfToken
from app.deps import identify_in, is_csrf_token, needs_csrf_token, require_access

JSON = "application/json"


class OneThreadRoute(APIRoute):
    """For endpoints with the parameters `request`, `campaign_id`, `body`, `user` and `session`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Serve a request; called once by the framework."""
        ordinary = super().get_route_handler()
        model = get_type_hints(self.endpoint).get("body")
        if model is None:  # nothing to send: these are read by few
            return ordinary

        async def in_steps(request: Request) -> Response:
            # Each of these takes a thread, and the gate lets in more requests than there are threads.
            async with request.app.state.writer.threads:
                return await ordinary(request)

        async def serve(request: Request) -> Response:
            try:
                body = model.model_validate_json(await request.body())
                campaign_id = UUID(request.path_params["campaign_id"])
            except (ValidationError, ValueError):
                return await in_steps(request)
            except ClientDisconnect:
                return Response(status_code=status.HTTP_400_BAD_REQUEST)  # nobody reads it
            kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != JSON:
                return await in_steps(request)
            work = partial(self._serve, request, campaign_id, body)
            response: Response = await request.app.state.writer.run(work)
            return response

        return serve

    def _serve(self, request: Request, campaign_id: UUID, body: BaseModel, session: Session) -> Response:
        identify_in(session, request)
        require_access(request)
        if needs_csrf_token(request) and not is_csrf_token(request, request.headers.get("x-csrf-token")):
            raise BadCsrfToken
        answer: BaseModel | None = self.endpoint(
            request=request, campaign_id=campaign_id, body=body, user=request.state.user, session=session
        )
        content = None if answer is None else answer.model_dump_json()
        return Response(content, self.status_code or 200, media_type=JSON if content else None)
