"""Between Sume's answer and its place in the row there is nothing that can fail."""

from types import SimpleNamespace

import pytest

from renders import counting, submission
from renders.models import RenderJob
from renders.replies import Accepted

pytestmark = pytest.mark.django_db


def test_an_accepted_job_is_noted_before_it_is_counted(monkeypatch):
    render = RenderJob.objects.create(prompt="a boat")
    answer = Accepted("job_1", "queued", False, None, None)
    client = SimpleNamespace(submit=lambda *request: answer)

    def fail(*args, **labels):
        raise OSError("the file of keys is on a disk that is gone")

    monkeypatch.setattr(counting, "count", fail)
    with pytest.raises(OSError, match="gone"):
        submission.submit(render.pk, lambda workspace: client)

    render.refresh_from_db()
    assert (render.status, render.sume_job_id) == ("submitted", "job_1")
