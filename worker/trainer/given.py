"""What a supervisor hands to the process that trains: as arguments of a command, without torch."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self
from uuid import UUID

from worker.beats import Teller

WORDS = 4  # of each trial
PART = "--part"  # before the place of another process of a run in several


@dataclass(frozen=True, slots=True)
class Given:
    """A trial, the number of the claim to it, whom to tell, and the open file of its log."""

    trial_id: UUID
    claim_number: int
    teller: Teller
    log: int

    @classmethod
    def all_of(cls, words: Sequence[str]) -> list[Self]:
        """Of the command's arguments: trial, claim, pipe and log of each."""
        return [
            cls(UUID(trial), int(claim), Teller(int(pipe)), int(log))
            for trial, claim, pipe, log in zip(*[iter(words)] * WORDS, strict=True)
        ]

    def speak(self) -> None:
        """From now on what this process and its libraries write goes into the trial's log."""
        for stream, number in ((sys.stdout, 1), (sys.stderr, 2)):
            stream.flush()
            os.dup2(self.log, number)
