"""What a render is called where it is shown."""

import pytest
from django.utils import timezone

from renders.models import RenderJob
from renders.presentation.titles import title_of, with_openings

pytestmark = pytest.mark.django_db
MARA = {"avatar_handle": "mara"}
PROPS = {"ethnicity": "White", "sex": "male", "age": 42}


@pytest.mark.parametrize(
    ("fields", "title"),
    [
        ({"prompt": "A boat"}, "A boat"),
        ({"prompt": "", "kind": "avatar", "params": {**MARA, "image_url": "x"}}, "from a photo"),
        ({"prompt": "", "kind": "avatar", "params": {**MARA, **PROPS}}, "from ethnicity, sex and"),
        ({"prompt": "", "kind": "avatar", "params": {}}, "Avatar"),
        ({"prompt": "", "kind": "image", "erased_at": timezone.now()}, "Erased"),
    ],
)
def test_a_title_is_never_empty_and_the_same_where_only_the_opening_is_read(
    fields, title, django_assert_num_queries
):
    RenderJob.objects.create(**fields)
    with django_assert_num_queries(1):
        [listed] = with_openings(RenderJob.objects.all(), 100)
        shown = title_of(listed)

    assert title in shown
    assert shown == title_of(RenderJob.objects.get())
