"""Only requests of the page itself are answered."""

from __future__ import annotations

from clients import HEADERS, served


def test_hosts(shared_client):
    port = shared_client.port
    good = (f"127.0.0.1:{port}", "localhost", f"LOCALHOST:{port}", f"[::1]:{port}", "lab.example", "lab.example:80")
    for host in good:
        answer = shared_client.get("/state", headers={"Host": host})
        assert answer.status == 200, host
        assert HEADERS.items() <= answer.headers.items()
    for host in (
        "evil.example",
        f"evil.example:{port}",
        "",
        "127.0.0.1.evil.example",
        "192.168.0.1",
        "localhost:x",
        "::1",
    ):
        answer = shared_client.get("/state", headers={"Host": host})
        assert answer.status == 400, host
        assert HEADERS.items() <= answer.headers.items()


def test_any_numeric_host_where_the_server_listens_everywhere(plans_path):
    with served(plans_path, allowed_hosts=["0.0.0.0", "lab"]) as client:
        for host, status in (("192.168.0.1:80", 200), ("[fe80::1]", 200), ("lab", 200), ("evil.example", 400)):
            assert client.get("/state", headers={"Host": host}).status == status


def test_other_pages_cannot_post(shared_client):
    own = f"http://127.0.0.1:{shared_client.port}"
    for headers, status in (
        ({"Origin": own}, 200),
        ({"Origin": own, "Sec-Fetch-Site": "same-origin"}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": f"https://127.0.0.1:{shared_client.port}"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content-Type": "Application/JSON; charset=utf-8"}, 200),
    ):
        answer = shared_client.post("/cancel", {}, headers=headers)
        assert answer.status == status, headers
        assert HEADERS.items() <= answer.headers.items()


def test_bodies(shared_client):
    big = b'{"x": "' + b"x" * 64 * 1024 + b'"}'
    for body, status in (
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b"null", 400),
        (b"\xff\xfe", 400),
        (b'{"x": NaN}', 400),
        (b"[" * 60_000, 400),
        (b'{"x": ' + b"9" * 5_000 + b"}", 400),
        (big, 413),
        (b"x" * 900_000, 413),
        (b"{}", 200),
    ):
        assert shared_client.post("/cancel", body).status == status, body[:20]
    line = shared_client.line()  # in chunks, without a length
    chunks = (big[i : i + 1000] for i in range(0, len(big), 1000))
    line.request("POST", "/cancel", chunks, {"Content-Type": "application/json"}, encode_chunked=True)
    assert line.getresponse().status == 413
    line.close()
    assert shared_client.get("/state").status == 200
