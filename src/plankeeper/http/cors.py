"""Cross-origin requests: the responses to a browser's preflight requests."""

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response as StarletteResponse

from plankeeper.http.requests import read_headers, resolve_request_id


class JsonCORSMiddleware(CORSMiddleware):
    """Starlette's CORS middleware, with preflight responses like all others: JSON with a request id.

    The response to a rejected preflight request lacks the header that would allow its origin.
    """

    def preflight_response(self, request_headers: Headers) -> StarletteResponse:
        cors_headers = super().preflight_response(request_headers).headers
        headers = {name: value for name, value in cors_headers.items() if not name.startswith("content-")}
        request_id = resolve_request_id(read_headers({"headers": request_headers.raw})).decode()
        return StarletteResponse("{}", 200, headers | {"x-request-id": request_id}, "application/json")
