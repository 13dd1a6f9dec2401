"""A stream around another stream."""

from typing import Any

from trainers.streams.base import TaskStream


class StreamWrapper:
    """Has all that its stream has, but for what a subclass defines."""

    def __init__(self, stream: TaskStream) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        """Returns an attribute of the stream, some of which only some kinds of stream have. Raises AttributeError."""
        if name.startswith("_"):  # of this object, which an unpickled one does not have yet
            raise AttributeError(name)
        return getattr(self._stream, name)
