"""Paths lead to endpoints: segment by segment, for a search through all routes cost as much as a query's parsing."""

from collections.abc import Mapping

from starlette.types import ASGIApp, Receive, Scope, Send


class _Node:
    """What may follow in a path: words, or else an id."""

    def __init__(self) -> None:
        self.literals: dict[str, _Node] = {}
        self.parameter: _Node | None = None
        self.app: ASGIApp | None = None
        self.parameter_names: list[str] = []  # of the ids on the way here


class PathRouter:
    """An ASGI application: the one of the request's path, or `default`.

    `apps` has them by path, with ids in braces; a word goes before an id. `path_params` of the scope gets the ids.
    """

    def __init__(self, apps: Mapping[str, ASGIApp], default: ASGIApp) -> None:
        self.paths = list(apps)
        self._root = _Node()
        self.default = default
        for path, app in apps.items():
            self._add(path, app)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self._find(scope) if scope["type"] == "http" else None
        await (app or self.default)(scope, receive, send)

    def _add(self, path: str, app: ASGIApp) -> None:
        node, names = self._root, list[str]()
        for segment in path.split("/"):
            if segment.startswith("{"):
                names.append(segment[1:-1])
                node.parameter = node = node.parameter or _Node()
            else:
                node = node.literals.setdefault(segment, _Node())
        node.app, node.parameter_names = app, names

    def _find(self, scope: Scope) -> ASGIApp | None:
        node, ids = self._root, list[str]()
        for segment in scope["path"].split("/"):
            child = node.literals.get(segment)
            if child is None:
                child = node.parameter
                if child is None or not segment:
                    return None
                ids.append(segment)
            node = child
        scope["path_params"] = dict(zip(node.parameter_names, ids, strict=True))
        return node.app
