"""Addresses that do not exist are answered with a sentence."""

from __future__ import annotations

import pytest
from clients import HEADERS


def test_old_links_lead_to_a_sentence(client):
    for number, words in (("2", "there is no set 2"), ("<b>", "found &#x27;&lt;b&gt;"), ("-1", "expected a number")):
        answer = client.get(f"/?set={number}")
        assert answer.status == 404
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert words in answer.body.decode()
        assert HEADERS.items() <= answer.headers.items()


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/favicon.ico", 404),
        ("GET", "/state/", 404),
        ("GET", "//etc/passwd", 404),
        ("GET", "/..%2f..%2fetc/passwd", 404),
        ("GET", "/../plans.choices.sqlite", 404),
        ("GET", "/state?since=x", 400),
        ("GET", "/sets/1/plans/1/policy.pkl", 404),
        ("GET", "/sets/1/plans/1/policy.json%00", 404),
        ("GET", "/sets/1/plans/1/policy...%2f..%2fplans.mw", 404),
        ("GET", "/sets/1/plans/0/policy.json", 404),
        ("GET", "/sets/1/plans/4/policy.json", 404),
        ("GET", "/sets/2/plans/1/policy.json", 404),
        ("GET", "/sets/-1/plans.mw", 404),
        ("GET", "/sets/..%2f1/plans.mw", 404),
        ("GET", f"/sets/{'9' * 5000}/plans.mw", 404),
        ("GET", "/sets/%D9%A1/plans.mw", 404),
        ("GET", "/mark", 405),
        ("POST", "/", 405),
        ("PUT", "/mark", 405),
        ("DELETE", "/sets/1/plans.mw", 405),
        ("OPTIONS", "/mark", 405),
        ("POST", "/nowhere", 404),
        ("POST", "/show", 404),
    ],
)
def test_unknown_addresses_and_methods(shared_client, method, path, status):
    answer = shared_client.ask(method, path, None if method == "GET" else {})
    assert answer.status == status
    assert answer.json["error"]
    assert HEADERS.items() <= answer.headers.items()
