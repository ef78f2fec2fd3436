"""A conversation with a text model that has the machine as its tool."""

from __future__ import annotations

from qgpu.runtime.chat.session import Answer, Session
from qgpu.runtime.chat.text_model import TextModel

__all__ = ["Answer", "Session", "TextModel"]
