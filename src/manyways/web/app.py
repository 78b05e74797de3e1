"""The ASGI application: routes and answers. Endpoints are plain functions, run in threads, since they wait for files."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from html import escape
from os import PathLike
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from manyways.errors import ManywaysError
from manyways.web.events import Refused
from manyways.web.guard import BODY, Guard, Json
from manyways.web.session import Session

TIME_LIMIT_S = 300.0
NO_SUCH_PAGE = """<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>manyways</title>
<body><p>{}</p><p><a href="./">Look at the newest plans</a></p></body></html>
"""
MEDIA_TYPES = {".json": "application/json", ".csv": "text/csv", ".scheduler": "text/plain", ".html": "text/html"}


def make_app(
    plans_path: str | PathLike[str], *, allowed_hosts: Iterable[str] = (), time_limit_s: float = TIME_LIMIT_S
) -> ASGIApp:
    """The application that serves one plan file.

    Args:
        plans_path: the file that `PlanSet.save` wrote; choices are stored in a file beside it.
        allowed_hosts: host names that requests may use besides localhost.
        time_limit_s: how long one planning job may search; the best plans so far are kept.
    """
    session = Session(Path(plans_path), time_limit_s)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        session.worker.ensure_process()
        yield
        session.close()

    app = Starlette(
        routes=_routes(session),
        exception_handlers={ManywaysError: _refused, HTTPException: _http_error, Exception: _failed},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False  # no second spelling of an address
    return Guard(app, allowed_hosts)


def _routes(session: Session) -> list[Route]:
    def page(request: Request) -> Response:
        number = request.query_params.get("set")
        try:
            return HTMLResponse(session.page(None if number is None else _number(number)))
        except Refused as refused:  # a person who followed an old link
            return HTMLResponse(NO_SUCH_PAGE.format(escape(str(refused))), refused.status)

    def state(request: Request) -> Response:
        since = request.query_params.get("since")
        return Json(session.state(None if since is None else _number(since, 400)))

    def plan(request: Request) -> Response:
        return Json({"job": session.plan(request.scope[BODY]), "server": session.server}, 202)

    def cancel(_: Request) -> Response:
        return Json({"cancelled": session.worker.cancel()})

    def mark(request: Request) -> Response:
        now = session.mark(request.scope[BODY])
        return Json({"last_event": now.last_event, "marks": now.marks, "chosen": now.chosen})

    def rounds_page(request: Request) -> Response:
        number = request.query_params.get("set")
        try:
            return HTMLResponse(session.rounds.page(None if number is None else _number(number)))
        except Refused as refused:
            return HTMLResponse(NO_SUCH_PAGE.format(escape(str(refused))), refused.status)

    def start_rounds(request: Request) -> Response:
        return Json({"job": session.rounds.start(request.scope[BODY]), "server": session.server}, 202)

    def answer(request: Request) -> Response:
        return Json({"job": session.rounds.answer(request.scope[BODY]), "server": session.server}, 202)

    def back(request: Request) -> Response:
        session.rounds.back(request.scope[BODY])
        return Json({})

    def stop(request: Request) -> Response:
        return Json(session.rounds.stop(request.scope[BODY]))

    def reward(_: Request) -> Response:
        return _attachment(*session.reward_file())

    def conversation(_: Request) -> Response:
        return _attachment(*session.conversation_file())

    def policy(request: Request) -> Response:
        asked = request.path_params
        return _attachment(*session.policy(_number(asked["number"]), _number(asked["plan"]), "." + asked["ending"]))

    def plans_file(request: Request) -> Response:
        return _attachment(*session.plans_file(_number(request.path_params["number"])))

    def route(request: Request) -> Response:
        asked = request.path_params
        return _attachment(*session.route(_number(asked["number"]), _number(asked["plan"]), "." + asked["ending"]))

    def page_file(request: Request) -> Response:
        return _attachment(*session.page_file(_number(request.path_params["number"])))

    return [
        Route("/", page),
        Route("/state", state),
        Route("/plan", plan, methods=["POST"]),
        Route("/cancel", cancel, methods=["POST"]),
        Route("/mark", mark, methods=["POST"]),
        Route("/rounds", rounds_page),
        Route("/rounds/start", start_rounds, methods=["POST"]),
        Route("/rounds/answer", answer, methods=["POST"]),
        Route("/rounds/back", back, methods=["POST"]),
        Route("/rounds/stop", stop, methods=["POST"]),
        Route("/rounds/learned.json", reward),
        Route("/rounds/rounds.mwc", conversation),
        Route("/sets/{number}/plans/{plan}/policy.{ending}", policy),
        Route("/sets/{number}/plans/{plan}/route.{ending}", route),
        Route("/sets/{number}/plans.mw", plans_file),
        Route("/sets/{number}/page.html", page_file),
    ]


def _number(text: str, status: int = 404) -> int:
    """A number in an address. At most 15 digits: Python and SQLite refuse very long ones."""
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise Refused(f"expected a number, found {text[:20]!r}", status)
    return int(text)


def _attachment(content: bytes, name: str) -> Response:
    media_type = MEDIA_TYPES.get(Path(name).suffix, "application/octet-stream")
    return Response(content, media_type=media_type, headers={"Content-Disposition": f'attachment; filename="{name}"'})


def _refused(_: Request, error: Exception) -> Response:
    return Json({"error": str(error)}, getattr(error, "status", 400))


def _http_error(_: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 500)
    words = {404: "there is nothing at this address", 405: "this address does not support that method"}
    return Json({"error": words.get(status, str(error))}, status, getattr(error, "headers", None))


def _failed(_: Request, error: Exception) -> Response:
    return Json({"error": f"the server failed: {type(error).__name__}; see its terminal for details"}, 500)
