"""What the demo says of Sume before it starts anything that sends."""

from pathlib import Path

import pytest

from renders.demo.stack import Site, Stack
from renders.demo.state import StateFolder
from renders.management.stopping import StopRequests


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("", "api.sume.com: every render is billed (SUME_API_KEY is set)"),
        (
            "https://ann:s3cret@sume.example.com",
            "sume.example.com, not Sume's own host: ask whoever runs it whether it bills "
            "(SUME_API_KEY is set)",
        ),
    ],
)
def test_with_a_key_it_says_which_host_gets_it_and_whether_that_bills(
    tmp_path: Path, address: str, words: str
) -> None:
    said: list[tuple[str, str]] = []
    stack = Stack(
        Site(tmp_path, "project", "project.settings"),
        StateFolder(tmp_path, keep=False),
        StopRequests(),
        environment={"SUME_API_KEY": "sk-canary", "SUME_BASE_URL": address},
        say=lambda what, how: said.append((what, how)),
    )

    stack._settle_sume(None)

    assert said == [("Sume", words)]
