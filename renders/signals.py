"""Signals to react to what became of a render.

All are sent with `sender=RenderJob, render=<RenderJob>`.

`render_completed`, `render_failed`, `render_canceled`
    Sent once the render has ended and, for a completed one, its result is stored. Receivers run
    in one database transaction with the mark `handled_at`: what they write to this database
    happens exactly once, even if the worker is killed midway. Effects elsewhere (mail, other
    services) can happen again after a crash or after another receiver raised, so send them from
    `transaction.on_commit` or make them repeatable. A receiver that raises never changes the
    render's status: the transaction is rolled back, the failure shows in the render's timeline,
    and all receivers run again later.

    A render whose outcome was unknown and that a person sends again with its own key ends once
    more: `render_failed` first, then the signal of how it really ended.

`render_media_stored`
    Sent for a render that was handled before all of its pictures and clips could be stored, once
    the last of them is stored: with what the receivers write, exactly once, as above. It is not
    sent if they were all stored before `render_completed`, nor if Sume no longer has the result.

`render_submitted`
    Sent after Sume accepted the render. For information: it is skipped if the worker dies at
    that moment, and a receiver that raises is only logged.
"""

from django.dispatch import Signal

render_submitted = Signal()
render_completed = Signal()
render_failed = Signal()
render_canceled = Signal()
render_media_stored = Signal()
