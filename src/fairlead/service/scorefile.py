"""The score of forecasts on disk: what the service learned about its own forecasts outlives it.

Decides when the file is written and what becomes of one that cannot be read. Never decides anything about a forecast.
Invariant: the file is there whole or not at all. It is no part of the journal, for no decision rests on it: what a
crash loses is what was scored since the last look, a few seconds.
"""

from __future__ import annotations

import logging
from pathlib import Path

import msgspec

from fairlead.insight.scorecard import Scorecard, State
from fairlead.service.whole_files import write_whole

log = logging.getLogger("fairlead.service")


class ScoreFile:
    """Where the scorecard of one service is kept."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._written = b""

    def read(self) -> Scorecard:
        """The scorecard as it was last written; a new one where there is none, or none that makes sense.

        One that makes no sense is moved aside, so that it can be looked at: a service starts without its score.
        """
        try:
            text = self._path.read_bytes()
        except FileNotFoundError:
            return Scorecard()
        except OSError as error:
            log.warning("the score of forecasts begins anew: %s cannot be read (%s)", self._path, error)
            return Scorecard()
        try:
            card = Scorecard.restored(msgspec.json.decode(text, type=State))
        except (msgspec.DecodeError, ValueError) as error:
            aside = self._path.with_name(f"{self._path.name}.bad")
            log.warning("the score of forecasts begins anew: %s makes no sense (%s); see %s", self._path, error, aside)
            try:
                self._path.replace(aside)
            except OSError as problem:
                log.warning("%s cannot be moved aside: %s", self._path, problem)
            return Scorecard()
        self._written = text
        return card

    def write(self, state: State) -> None:
        """Keep it, if it is another one than last time. Raises OSError."""
        text = msgspec.json.encode(state)
        if text == self._written:
            return
        write_whole(self._path, text)
        self._written = text
