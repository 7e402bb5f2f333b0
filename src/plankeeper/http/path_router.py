"""Paths lead to endpoints: segment by segment, for a search through all routes cost as much as a query's parsing."""

from collections.abc import Mapping

from starlette.types import ASGIApp, Receive, Scope, Send


class _Step:
    """What may follow in a path: words, or else an id."""

    def __init__(self) -> None:
        self.words: dict[str, _Step] = {}
        self.id: _Step | None = None
        self.app: ASGIApp | None = None
        self.names: list[str] = []  # of the ids on the way here


class Paths:
    """An ASGI application: the one of the request's path, or `otherwise`.

    `apps` has them by path, with ids in braces; a word goes before an id. `path_params` of the scope gets the ids.
    """

    def __init__(self, apps: Mapping[str, ASGIApp], otherwise: ASGIApp) -> None:
        self.paths = list(apps)
        self._first = _Step()
        self.otherwise = otherwise
        for path, app in apps.items():
            self._add(path, app)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._find(scope) if scope["type"] == "http" else None
        await (app or self.otherwise)(scope, receive, send)

    def _add(self, path: str, app: ASGIApp) -> None:
        step, names = self._first, list[str]()
        for segment in path.split("/"):
            if segment.startswith("{"):
                names.append(segment[1:-1])
                step.id = step = step.id or _Step()
            else:
                step = step.words.setdefault(segment, _Step())
        step.app, step.names = app, names

    def _find(self, scope: Scope) -> ASGIApp | None:
        step, ids = self._first, list[str]()
        for segment in scope["path"].split("/"):
            following = step.words.get(segment)
            if following is None:
                following = step.id
                if following is None or not segment:
                    return None
                ids.append(segment)
            step = following
        scope["path_params"] = dict(zip(step.names, ids, strict=True))
        return step.app
