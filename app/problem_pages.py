"""/problems/...: what each type of problem means; the address that problem+json points to. And /docs."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from app.access import public
from app.errors import NotFound
from app.pages import render
from app.problems import problem_types, status_of

router = APIRouter(include_in_schema=False)


class ProblemTypeNotFound(NotFound):
    """No error of ours is called that."""

    title = "Unknown problem type"


@router.get("/problems/{slug}")
@public
def show_problem(request: Request, slug: str) -> HTMLResponse:
    """One type of problem."""
    kind = problem_types().get(slug)
    if kind is None:
        raise ProblemTypeNotFound(f"There is no type of problem called {slug[:80]!r}.")
    return render(
        request,
        "problem.html",
        slug=slug,
        title=kind.title,
        explanation=kind.__doc__ or "",
        problem_status=status_of(kind.__new__(kind)),
    )


@router.get("/docs")
@public
def show_docs(request: Request) -> HTMLResponse:
    """The API's documentation, drawn from the OpenAPI document by scripts that we serve ourselves."""
    page = render(request, "docs.html")
    # The viewer sets inline styles; nothing a user wrote is on this page.
    page.headers["Content-Security-Policy"] = (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
        "connect-src 'self'; font-src 'self'; frame-ancestors 'none'"
    )
    return page
