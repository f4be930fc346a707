"""A stand-in for the Sume API, over real HTTP: bills nothing, draws its own pictures.

Knows nothing of the app and nothing of Django. `Sandbox` runs it in this process,
`manage.py sumesandbox` as a server of its own.
"""

from .options import Options
from .server import Sandbox

__all__ = ["Options", "Sandbox"]
