"""What people are told about each kind of render where they add one."""

from renders.states import Kind

# Short, and no promise: which further fields a model knows, only Sume can say.
HELP: dict[Kind, str] = {
    Kind.IMAGE: "A still picture of what the prompt says.",
    Kind.VIDEO: "A clip made from the prompt; it takes longer and costs more than a picture.",
    Kind.AVATAR: "A character, to be used again in avatar videos.",
    Kind.AVATAR_VIDEO: "A clip in which an avatar speaks or acts; the prompt says what.",
}

# What a prompt may look like.
EXAMPLES: dict[Kind, str] = {
    Kind.IMAGE: "A lighthouse at dawn, watercolour, soft light.",
    Kind.VIDEO: "A paper boat drifts down a rainy street; the camera follows it.",
    Kind.AVATAR: "A friendly librarian in her fifties, round glasses, green cardigan, front view.",
    Kind.AVATAR_VIDEO: "She looks up from her book and says: Welcome, what shall we read?",
}
