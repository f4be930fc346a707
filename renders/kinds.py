"""What people are told about each kind of render where they add one."""

from renders.bodies import LONGEST_SECONDS, WORDS_PER_SECOND
from renders.states import Kind

# Short, and no promise: which further fields a model knows, only Sume can say.
HELP: dict[Kind, str] = {
    Kind.IMAGE: "A still picture of what the prompt says.",
    Kind.VIDEO: "A clip made from the prompt; it takes longer and costs more than a picture.",
    Kind.AVATAR: "A character, to be used again in avatar videos.",
    Kind.AVATAR_VIDEO: "A clip in which an avatar says what you write.",
}

# What the prompt is, and what it is called.
PROMPT_LABELS: dict[Kind, str] = {
    Kind.IMAGE: "Prompt",
    Kind.VIDEO: "Prompt",
    Kind.AVATAR: "Description",
    Kind.AVATAR_VIDEO: "Script",
}
PROMPT_HELP: dict[Kind, str] = {
    Kind.IMAGE: "What the picture should show, in your words.",
    Kind.VIDEO: "What the clip should show, in your words.",
    Kind.AVATAR: "Describe the avatar. Or leave this empty and give a photo, or ethnicity, sex and "
    "age.",
    Kind.AVATAR_VIDEO: f"What the avatar says: up to {LONGEST_SECONDS} seconds, about "
    f"{int(LONGEST_SECONDS * WORDS_PER_SECOND) // 10 * 10} words.",
}

# What it may look like.
EXAMPLES: dict[Kind, str] = {
    Kind.IMAGE: "A lighthouse at dawn, watercolour, soft light.",
    Kind.VIDEO: "A paper boat drifts down a rainy street; the camera follows it.",
    Kind.AVATAR: "A friendly librarian in her fifties, round glasses, green cardigan, front view.",
    Kind.AVATAR_VIDEO: "Welcome! What shall we read today?",
}
