"""The origin of the console in the browser: the public URL, otherwise the scheme and the host of the request."""

import re

from starlette.requests import Request

from plankeeper.http.browsers import HSTS

_HOST_PATTERN = re.compile(r"[A-Za-z0-9.\-]+(:[0-9]+)?|\[[0-9a-fA-F:]+\](:[0-9]+)?")


class Origin:
    """The origin of a request's pages: `url` begins links, and `form_origins` are the origins that forms come from."""

    def __init__(self, request: Request, public_url: str | None) -> None:
        scheme, host = request.scope["scheme"], request.headers.get("host", "")
        self.is_secure = public_url is not None or scheme == "https"
        # The host is validated because it is shown in a command that people copy into a shell.
        self.url = public_url or (f"{scheme}://{host}" if _HOST_PATTERN.fullmatch(host) else "https://your-server")
        if public_url:
            self.form_origins = [public_url]
        else:  # a proxy that terminates TLS does not always pass on the scheme
            schemes = ["https"] if self.is_secure else ["http", "https"]
            self.form_origins = [f"{each}://{host}" for each in schemes]

    @property
    def headers(self) -> dict[str, str]:
        """The headers of every response."""
        return {"strict-transport-security": HSTS} if self.is_secure else {}
