"""What Celery's side tells about a task."""

import pytest

from renders import tasks
from renders.services import create_render


@pytest.mark.django_db
def test_a_result_says_what_follows_for_which_render(sume):
    render = create_render("A boat")

    assert tasks.submit_render(str(render.pk)) == f"poll {str(render.pk)[:8]} in 0.5 s"
    sume.run_to_end(render)
    assert tasks.finish_render(str(render.pk)) == "nothing follows"
