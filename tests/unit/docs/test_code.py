"""The page about using it from one's own code shows code that runs in `tests/examples`."""

from tests.unit.docs.reading import ROOT, blocks, page


def test_its_examples_are_code_that_runs():
    examples = [path.read_text() for path in (ROOT / "tests/examples").rglob("*.py")]
    shown = blocks(page("code"), "python")

    assert shown
    assert [code for code in shown if not any(code in example for example in examples)] == []
