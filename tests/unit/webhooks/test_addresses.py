"""Which addresses may be called, as far as can be seen before a name is looked up."""

import re
import ssl
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import httpcore
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plankeeper.webhooks.client import PublicAddressBackend, WebhookClient
from plankeeper.webhooks.url_policy import ANY_NETWORK, is_blocked, validate_url

INVALID_SCHEME = "must start with https://"
INVALID_SCHEME_BESIDE_ALLOWED = (
    f"{INVALID_SCHEME}, or with http:// and an IP address of an allowed network, not its name"
)
PRIVATE_ADDRESS = (
    "must not be an address in a private network, unless the operator allows the network with "
    "PLANKEEPER_WEBHOOK_ALLOWED_NETWORKS; to receive events on your own computer, you can also use plankeeper listen"
)
INVALID_HOST = "must have a host name that consists of letters, digits and hyphens"
INVALID_IP = "must have a host name or an IP address in its standard notation"
INVALID_PORT = "must have port 443, port 80 or a port above 1023"
HAS_CREDENTIALS = "must not contain credentials"
HAS_FRAGMENT = "must not contain a fragment"
INVALID_CHARACTERS = "must be ASCII without spaces and backslashes: percent-encode other characters"
INVALID_URL = "must be a URL, such as https://example.com/hooks"

PUBLIC = ["1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.0", "172.15.0.1", "172.32.0.1", "192.0.1.1",
          "223.255.255.255", "2606:4700:4700::1111", "2001:4860:4860::8888", "2a00::1", "2003::1"]  # fmt: skip
BLOCKED = [
    *("0.0.0.0", "0.1.2.3", "127.0.0.1", "127.255.255.254", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1"),  # noqa: S104
    *("168.63.129.16",),
    *("169.254.169.254", "100.64.0.1", "100.127.255.255", "100.100.100.200", "192.0.0.192", "192.0.2.1", "198.18.0.1"),
    *("198.19.255.255", "198.51.100.1", "203.0.113.1", "192.88.99.1", "224.0.0.1", "239.255.255.255", "240.0.0.1"),
    *("255.255.255.255", "::", "::1", "fe80::1", "fe90::1", "fec0::1", "fc00::1", "fd00:ec2::254", "ff02::1"),
    *("::ffff:127.0.0.1", "::ffff:8.8.8.8", "::ffff:7f00:1", "0:0:0:0:0:ffff:a00:1", "::127.0.0.1", "::7f00:1"),
    *("::ffff:0:127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::a00:1", "64:ff9b::8.8.8.8", "64:ff9b:1::a00:1"),
    *("2002:7f00:1::", "2002:a9fe:a9fe::1", "2001:0:7f00:1::", "2001:10::1", "2001:20::1", "2001:db8::1", "100::1"),
    *("100:0:0:1::1", "3fff::1", "5f00::1", "4000::1", "8000::1", "e000::1", "2620:4f:8000::1"),
]  # fmt: skip


def url_of(address: str) -> str:
    return f"https://[{address}]/" if ":" in address else f"https://{address}/"


@pytest.mark.parametrize("address", BLOCKED)
def test_non_public_addresses_are_blocked(address: str) -> None:
    assert is_blocked(ip_address(address), ())
    assert validate_url(url_of(address), ()) == PRIVATE_ADDRESS
    assert validate_url(url_of(address).upper().replace("HTTPS", "https"), ()) == PRIVATE_ADDRESS


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_are_allowed(address: str) -> None:
    assert not is_blocked(ip_address(address), ())
    assert validate_url(url_of(address), ()) is None


@settings(max_examples=1000)
@given(st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)))
def test_addresses_that_the_standard_library_calls_private_are_blocked(address: IPv4Address | IPv6Address) -> None:
    assert address.is_global or is_blocked(address, ())


@pytest.mark.parametrize(
    "url",
    [
        "https://example.com", "https://example.com/", "https://EXAMPLE.com/Hooks?x=%20&y=/..//", "HTTPS://a.b/",
        "https://example.com:443/", "https://example.com:80", "https://example.com:1024", "https://example.com:65535",
        "https://example.com:", "https://xn--caf-dma.example/", "https://_x.a-b.example/a;b=c?d;e", "https://localhost/",
        "https://1.example.com/", "https://0xcafe.example/", f"https://{'a' * 63}.example/", "https://example.com/@:x",
        "https://example.com?@127.0.0.1", "https://example.com/https://127.0.0.1",
    ],
)  # fmt: skip
def test_a_host_name_over_https_is_accepted(url: str) -> None:
    assert validate_url(url, ()) is None


@pytest.mark.parametrize(
    "error, urls",
    [
        (
            INVALID_SCHEME,
            [
                "http://example.com/",
                "ftp://example.com/",
                "gopher://example.com/",
                "ws://example.com/",
                "//a.b/",
                "http://localhost/",
                "http://1.1.1.1/",
                "httpss://a.b/",
            ],
        ),
        (
            INVALID_URL,
            [
                "",
                "example.com",
                "/hooks",
                "file:///etc/passwd",
                "javascript:alert(1)",
                "data:text/plain,x",
                "https:",
                "https://",
                "https:///example.com/",
                "https:example.com",
                "https://?x",
                "https://:443/",
                "https://[::1",
                "https://::1/",
                "https://fe80::1/",
                "https://[example.com]/",
                "https://a[2606:4700::1]/",
                "https://[]/",
                "https://[2606:4700::1]a/",
                "https://[fe80::1%25eth0]/",
                "https://[2606:4700::1%251]/",
                "https://[v1.a]/",
                "https://1.1.1.1%2f/",
                "https://ex%61mple.com/",
                "https://%31%32%37.0.0.1/",
                "https://a.b:65536/",
                "https://a.b:-1/",
                "https://a.b:+443/",
                "https://a.b:4_43/",
                "https://a.b:x/",
                "https://a:443:443/",
            ],
        ),
        (
            INVALID_IP,
            [
                "https://127.1/",
                "https://0x7f000001/",
                "https://0X7F000001/",
                "https://2130706433/",
                "https://0/",
                "https://017700000001/",
                "https://0177.0.0.1/",
                "https://127.0.1/",
                "https://0x7f.1/",
                "https://1/",
                "https://127.0.0.01/",
                "https://0x7f.0x0.0x0.0x1/",
                "https://1.1.1.1.1/",
                "https://256.1.1.1/",
                "https://8.8.2056/",
                "https://4294967296/",
                "https://0x/",
            ],
        ),
        (
            INVALID_HOST,
            [
                "https://127.0.0.1./",
                "https://example.com./",
                "https://.example.com/",
                "https://a..b/",
                "https://-a.b/",
                "https://a,b/",
                "https://a.b;c/",
                "https://*.a.b/",
                "https://a.b&c/",
                "https://$(id).a/",
                "https://a'b/",
                f"https://{'a' * 64}.b/",
                f"https://{'a.' * 127}b/",
            ],
        ),
        (INVALID_PORT, [f"https://a.b:{port}/" for port in (0, 1, 22, 25, 53, 79, 81, 442, 444, 587, 1023)]),
        (
            HAS_CREDENTIALS,
            [
                "https://u:p@example.com/",
                "https://u@example.com/",
                "https://@example.com/",
                "https://:@a.b/",
                "https://example.com@127.0.0.1/",
                "https://example.com:443@127.0.0.1/",
                "https://a@b@c.d/",
                "https://example.com%40x@127.0.0.1/",
                "https://127.0.0.1:x@example.com/",
            ],
        ),
        (
            HAS_FRAGMENT,
            [
                "https://example.com/#x",
                "https://example.com#",
                "https://127.0.0.1#@example.com/",
                "https://example.com#@127.0.0.1/",
            ],
        ),
        (
            INVALID_CHARACTERS,
            [
                "https://example.com/a b",
                " https://example.com/",
                "https://example.com/ ",
                "https://exa\tmple.com/",
                "https://example.com\n",
                "https://example.com/\r\nX-A: b",
                "https://a.b/\x00",
                "https://a.b/\x7f",
                "\x01https://a.b/",
                "https://café.example/",
                "https://a.b/é",
                "https://127。0。0。1/",
                "https://①②⑦.⓪.⓪.①/",
                "https://example.com\\@127.0.0.1/",
                "https:\\\\example.com/",
                "https://a.b/\\",
                "https://a.b\u2028/",
                "https://127.0.0.1 .example.com/",
                "https://a.b/\ud800",
            ],
        ),
    ],
)
def test_an_invalid_url_is_rejected_with_its_reason(error: str, urls: list[str]) -> None:
    found = {url: validate_url(url, ()) for url in urls}
    # Of an odd character, or of one that looks like another, the parser may already say that it is no URL.
    assert {
        url: reported
        for url, reported in found.items()
        if reported != error and not (error == INVALID_CHARACTERS and reported == INVALID_URL)
    } == {}


@pytest.mark.parametrize(
    "url, error",
    [
        ("http://127.0.0.1:3000/", None),
        ("https://127.0.0.1:3000/", None),
        ("http://[fd00::1]/", None),
        ("http://127.0.0.2/", PRIVATE_ADDRESS),
        ("https://[::ffff:127.0.0.1]/", PRIVATE_ADDRESS),
        ("http://10.0.0.1/", PRIVATE_ADDRESS),
        ("http://localhost/", INVALID_SCHEME_BESIDE_ALLOWED),
        ("http://1.1.1.1/", INVALID_SCHEME_BESIDE_ALLOWED),
        ("ftp://127.0.0.1/", INVALID_SCHEME),
        ("http://127.0.0.1:22/", INVALID_PORT),
        ("http://127.1/", INVALID_IP),
        ("http://u@127.0.0.1/", HAS_CREDENTIALS),
    ],
)
def test_only_networks_allowed_by_the_operator_are_accepted(url: str, error: str | None) -> None:
    assert validate_url(url, [ip_network("127.0.0.1/32"), ip_network("fd00::/8")]) == error


def test_any_network_allows_every_address() -> None:
    assert not any(is_blocked(ip_address(each), ANY_NETWORK) for each in [*PUBLIC, *BLOCKED])


TRUST = ssl.create_default_context()  # takes as long as a hundred examples


class RecordingBackend(httpcore.AsyncNetworkBackend):
    """Connects to nothing, and remembers where it should have."""

    def __init__(self) -> None:
        self.called: list[tuple[str, int]] = []

    async def connect_tcp(self, host: str, port: int, *_: object, **__: object) -> httpcore.AsyncNetworkStream:
        self.called.append((host, port))
        raise httpcore.ConnectError


URL_PIECES = st.sampled_from(
    [
        *"@:?#;[]/\\%.&=+-_~!$'()*,\t \n\0|^<>",
        "//",
        "..",
        "http://",
        "https://",
        "127.0.0.1",
        "1.1.1.1",
        "example.com",
        "a.example",
        "[::1]",
        "[2606:4700::1111]",
        "%00",
        "%2f",
        "%40",
        ":443",
        ":8443",
        ":0",
        "0x7f",
        "xn--",
        "user",
        "é",
    ]
)


@settings(max_examples=1000, deadline=None)
@given(st.sampled_from(["a.example", "1.1.1.1", "[2606:4700::1111]", ""]), st.lists(URL_PIECES, max_size=5))
async def test_the_connected_host_is_the_validated_host(start: str, rest: list[str]) -> None:
    """RFC 3986 says by itself what the host of a URL is: two parsers could disagree, and be played off each other."""
    url = f"https://{start}{''.join(rest)}"
    asked: list[tuple[str, int]] = []

    async def resolve(host: str, port: int) -> list[str]:
        asked.append((host, port))
        return ["1.1.1.1"]

    sender, recorder = WebhookClient((), resolve, TRUST), RecordingBackend()
    backend = sender._pool._network_backend  # noqa: SLF001
    assert isinstance(backend, PublicAddressBackend)
    backend._inner = recorder  # noqa: SLF001
    await sender.post(url, [], b"{}")
    await sender.close()
    if validate_url(url, ()):
        assert asked == recorder.called == []
        return
    found = re.fullmatch(r"https://(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::([0-9]*))?(?:[/?].*)?", url)
    assert found, url
    literal, name, port = found[1], found[2], int(found[3] or 443)
    is_name = name is not None and name != "1.1.1.1"
    assert asked == ([(name, port)] if is_name else [])
    assert recorder.called == [("1.1.1.1" if name else literal, port)]
