"""What the OpenAPI document shows: a render, the budgets, and a request of each kind."""

from typing import Any

RENDER_ID = "5f0c7a52-4c52-4f0e-9f6d-6f1f6a1d2b3c"

EXAMPLE: dict[str, Any] = {
    "id": RENDER_ID,
    "workspace": "default",
    "kind": "image",
    "model": "sume/auto",
    "prompt": "A boat",
    "params": {"seed": 7},
    "priority": 0,
    "reference": "order-1",
    "status": "completed",
    "sume_status": "completed",
    "created_at": "2026-01-31T09:30:00.000000Z",
    "submitted_at": "2026-01-31T09:30:01.000000Z",
    "cancel_requested_at": None,
    "finished_at": "2026-01-31T09:30:21.000000Z",
    "erased_at": None,
    "error": None,
    "waiting_reason": None,
    "artifacts": [
        {
            "type": "image",
            "content_type": "image/png",
            "url": f"https://example.com/api/renders/{RENDER_ID}/artifacts/0/",
        }
    ],
    "cost_usd_micros": 90_000,
    "retry_of": None,
    "url": f"https://example.com/api/renders/{RENDER_ID}/",
    "html_url": f"https://example.com/renders/{RENDER_ID}/",
}

BUDGET: dict[str, Any] = {
    "month": "2026-01",
    "workspaces": [
        {
            "workspace": "default",
            "budget_usd_micros": 200_000_000,
            "left_usd_micros": 58_300_000,
            "user_budget_usd_micros": 500_000,
            "user_left_usd_micros": 140_000,
        }
    ],
}

REQUESTS: dict[str, dict[str, Any]] = {
    "image": {"prompt": "A boat", "params": {"seed": 7}, "reference": "order-1"},
    "video": {"kind": "video", "prompt": "A paper boat drifts down a rainy street."},
    "avatar_from_prompt": {
        "kind": "avatar",
        "prompt": "A friendly librarian in her fifties, round glasses, green cardigan.",
        "params": {"avatar_handle": "@mara"},
    },
    "avatar_from_photo": {
        "kind": "avatar",
        "params": {"avatar_handle": "@mara", "image_url": "https://example.com/mara.png"},
    },
    "avatar_from_props": {
        "kind": "avatar",
        "params": {"avatar_handle": "@mara", "ethnicity": "White", "sex": "female", "age": 52},
    },
    "avatar_video": {
        "kind": "avatar_video",
        "prompt": "Welcome! What shall we read today?",
        "params": {
            "avatar_handle": "@mara",
            "quality": "plus",
            "scene": {"type": "prompt", "prompt": "A quiet library in the morning."},
            "aspect_ratio": "9:16",
        },
    },
    "many": {"renders": [{"prompt": "A boat"}, {"prompt": "A fox", "kind": "video"}]},
}

LINE_FULL = {
    "code": "too_many_waiting",
    "detail": "Nothing was made. You have 998 renders waiting, and at most 1,000 may wait: 5 more "
    "do not fit. Wait until some have been sent, or cancel some.",
}
