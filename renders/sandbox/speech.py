"""How long a script takes to speak, estimated as the public command line client does it.

A script is spoken in clips of 4 to 12 s, cut between sentences where that can be done, at 2.8
words a second. The video is as long as its clips together.
"""

import math
import re
from collections.abc import Iterator
from typing import Any

from .values import Problem, text

WORDS_PER_SECOND = 2.8
SHORTEST_CLIP_SECONDS, LONGEST_CLIP_SECONDS = 4, 12
SHORTEST_SECONDS, LONGEST_SECONDS = 4, 60
# So many words fit into the longest clip; fewer than the second make no clip of their own.
MOST_WORDS = math.floor(LONGEST_CLIP_SECONDS * WORDS_PER_SECOND)
FEWEST_WORDS = 7
SENTENCE = re.compile("[^.!?\u3002\uff01\uff1f]+[.!?\u3002\uff01\uff1f]?")


def script(value: Any, path: str) -> Iterator[Problem]:
    """A script of at least one word that takes 4 to 60 s to speak."""
    problems = list(text(value, path))
    yield from problems
    # Many languages put no spaces between words: counting words says nothing about them.
    if not problems and len(value.split()) > 1:
        seconds = spoken_seconds(value)
        if not SHORTEST_SECONDS <= seconds <= LONGEST_SECONDS:
            limits = f"{SHORTEST_SECONDS} to {LONGEST_SECONDS} seconds"
            yield path, f"Estimated at {seconds} seconds; it must be {limits}."


def spoken_seconds(script: str) -> int:
    """The estimated length of the video, in whole seconds; 0 without a word."""
    return sum(map(_clip_seconds, _clips(script)))


def _clips(script: str) -> list[int]:
    """How many words each clip has."""
    clips: list[int] = []
    open_clip = 0
    for words in _sentences(script):
        if words > MOST_WORDS:
            clips += [open_clip] if open_clip else []
            clips += _even_parts(words)
            open_clip = 0
        elif open_clip >= FEWEST_WORDS and open_clip + words > MOST_WORDS:
            clips.append(open_clip)
            open_clip = words
        else:
            open_clip += words
    clips += [open_clip] if open_clip else []
    # A short rest joins the clip before it.
    if len(clips) > 1 and clips[-1] < FEWEST_WORDS and sum(clips[-2:]) <= MOST_WORDS:
        clips[-2:] = [sum(clips[-2:])]
    return clips


def _sentences(script: str) -> list[int]:
    """How many words each sentence has; those without any are left out."""
    sentences = SENTENCE.findall(script) or [script]
    return [words for sentence in sentences if (words := len(sentence.split()))]


def _even_parts(words: int) -> list[int]:
    size = math.ceil(words / math.ceil(words / MOST_WORDS))
    return [min(size, words - start) for start in range(0, words, size)]


def _clip_seconds(words: int) -> int:
    seconds = math.ceil(words / WORDS_PER_SECOND)
    return min(LONGEST_CLIP_SECONDS, max(SHORTEST_CLIP_SECONDS, seconds))
